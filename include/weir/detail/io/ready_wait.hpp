// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/io/source.hpp>

namespace weir::detail {

class foreign_descriptor;

/// See weir::readable.
class ready_wait : public io_operation<ready_wait> {
 public:
  struct args {
    int descriptor;
    io_side side;
  };
  using result = void;

  explicit ready_wait(args&& a);
  ~ready_wait();
  bool try_now() noexcept;
  void take() { rethrow(); }

 private:
  foreign_descriptor& foreign() const noexcept;
};

}  // namespace weir::detail
