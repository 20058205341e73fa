// SPDX-License-Identifier: MIT
// The machinery of <weir/loop_ref.hpp>.
#pragma once

#include <memory>
#include <utility>

namespace weir {

class loop_ref;

namespace detail {

class door;

/// A function posted to a loop.
class posted_call {
 public:
  posted_call() = default;
  posted_call(const posted_call&) = delete;
  posted_call& operator=(const posted_call&) = delete;
  virtual ~posted_call() = default;
  virtual void call() = 0;
};

template <class F>
class posted_function final : public posted_call {
 public:
  template <class G>
  explicit posted_function(G&& fn) : fn_(std::forward<G>(fn)) {}
  void call() override { fn_(); }

 private:
  F fn_;
};

bool post_to(const loop_ref& to, std::unique_ptr<posted_call> call);

}  // namespace detail
}  // namespace weir
