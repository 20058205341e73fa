// SPDX-License-Identifier: MIT
// All of io: sockets, files, signals, processes and HTTP as waits, tasks and streams.
#pragma once

#include <weir/http.hpp>
#include <weir/io/command.hpp>
#include <weir/io/connect.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/io/file.hpp>
#include <weir/io/listener.hpp>
#include <weir/io/listeners.hpp>
#include <weir/io/process.hpp>
#include <weir/io/ready.hpp>
#include <weir/io/serve.hpp>
#include <weir/io/signals.hpp>
#include <weir/io/socket.hpp>
#include <weir/io/tls.hpp>
#include <weir/io/udp.hpp>
#include <weir/ws.hpp>
