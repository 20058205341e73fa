// SPDX-License-Identifier: MIT
// What sockets, listeners and connects share when they open or take over a descriptor.
#pragma once

#include <weir/io/endpoint.hpp>

#include "io/system.hpp"

namespace weir::detail {

void set_no_delay(int descriptor) noexcept;
/// Non-blocking and close-on-exec.
void set_descriptor_flags(int descriptor);
/// Anything else: errc::invalid_argument, or the system's error.
void require_stream_socket(int descriptor, const char* what);
/// A socket that listens at an IP address, or at a path with mode 0600.
owned_descriptor open_listening(const io::endpoint& at, int backlog, bool reuse_port);
/// Below 1: errc::invalid_argument.
void require_backlog(int backlog);
/// In a simulation: errc::invalid_argument; in a durable run: errc::not_journaled.
void require_real_loop(const char* what);

}  // namespace weir::detail
