// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <weir/duration.hpp>
#include <weir/io/socket.hpp>
#include <weir/task.hpp>

namespace weir::io {

struct connect_options {
  duration attempt_delay = std::chrono::milliseconds(250);
};

/// Connects to the first address of a host that answers: further addresses are tried after each
/// `attempt_delay`, or as soon as one has failed. A host name is resolved on another thread, which
/// a cancellation abandons. No limit of its own: use with_timeout.
///
/// errc::host_not_found; otherwise, if all addresses have failed, the code of the last one, with
/// each address in the text.
task<socket> connect(std::string_view host, int port, connect_options options = {});
task<socket> connect_unix(std::string_view path);

}  // namespace weir::io
