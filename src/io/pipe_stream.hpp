// SPDX-License-Identifier: MIT
// One end of a pipe as a byte stream: reading, or writing, but not both. Flags and edges are as in
// descriptor_stream.hpp, except that here a flag is false only after a try that would have blocked.
#pragma once

#include <string>

#include <weir/detail/io/stream_core.hpp>

#include "io/reactor.hpp"
#include "io/system.hpp"

namespace weir::detail {

class pipe_stream final : public stream_core, private reactor_entry {
 public:
  /// `text`: how errors and dumps call it. The descriptor is made non-blocking.
  pipe_stream(owned_descriptor descriptor, std::string text);
  ~pipe_stream() override;

  io_try receive(std::span<std::byte> into) noexcept override;
  /// Raises no SIGPIPE.
  io_try send(std::span<const std::byte> bytes) noexcept override;
  /// Pipes end by `close`.
  int shutdown_write() noexcept override { return EINVAL; }
  void close() noexcept override;
  io::endpoint peer() const noexcept override { return {}; }
  io::endpoint local() const noexcept override { return {}; }
  int native_handle() const noexcept override { return descriptor_.get(); }
  bool hung_up() const noexcept override { return hung_up_; }
  bool has_arrived() noexcept override;
  std::string text() const override { return text_; }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;
  io_try blocked() noexcept;

  owned_descriptor descriptor_;
  std::string text_;
  bool ready_ = true;
  bool hung_up_ = false;
};

}  // namespace weir::detail
