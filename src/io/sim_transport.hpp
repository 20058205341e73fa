// SPDX-License-Identifier: MIT
// Sockets on the simulated network: what io::listen, io::connect, their Unix variants and
// io::udp::bind do on a loop whose environment is simulated. No port, no descriptor, no file.
//
// Requires: called by a fiber of a simulated loop (`loop::here()->env().simulated()`), outside of
// durable runs; ports are 0 to 65535, backlogs 1 or more.
#pragma once

#include <string>

#include <weir/io/listener.hpp>
#include <weir/io/socket.hpp>
#include <weir/io/udp.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// Listens on the running loop, whose name is the host; port 0 picks one. `address` is any numeric
/// address, all of which mean this loop; anything else is errc::invalid_argument. The port is
/// taken: std::errc::address_in_use.
io::listener listen_in_simulation(const std::string& address, int port, int backlog);
/// Connects to a loop by its name, or to the running one by 127.0.0.1. No such loop:
/// errc::host_not_found; no listener there: std::errc::connection_refused.
task<io::socket> connect_in_simulation(std::string host, int port);

/// Binds a port for datagrams on the running loop; address and port as for listening.
io::udp bind_in_simulation(const std::string& address, int port);

/// Listening and connecting by a path; the paths of a world are one namespace, which is not the
/// file system's.
io::listener listen_unix_in_simulation(const std::string& path);
task<io::socket> connect_unix_in_simulation(std::string path);

}  // namespace weir::detail
