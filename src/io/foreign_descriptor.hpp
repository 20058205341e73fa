// SPDX-License-Identifier: MIT
// A descriptor of another library that fibers wait for with weir::readable and writable.
//
// It is registered while a fiber waits, for one event of what is waited for; nothing is known of
// it in between, because its owner may have closed it.
#pragma once

#include <cstdint>

#include <weir/detail/io/source.hpp>

#include "io/reactor.hpp"

namespace weir::detail {

class foreign_descriptor final : public io_source, private reactor_entry {
 public:
  foreign_descriptor(reactor& in, int number) noexcept : reactor_(&in), number_(number) {}
  ~foreign_descriptor() override = default;

  std::string text() const override { return "descriptor " + std::to_string(number_); }
  int number() const noexcept { return number_; }
  reactor& in() const noexcept { return *reactor_; }

  int users = 0;  // operations that refer to it

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;
  int apply() noexcept;

  reactor* reactor_;
  int number_;
  std::uint32_t wanted_ = 0;  // the events that fibers wait for
};

/// EPOLLIN or EPOLLOUT.
std::uint32_t event_of(io_side side) noexcept;

}  // namespace weir::detail
