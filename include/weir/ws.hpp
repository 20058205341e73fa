// SPDX-License-Identifier: MIT
// All of WebSocket.
#pragma once

#include <weir/ws/accept.hpp>
#include <weir/ws/connect.hpp>
#include <weir/ws/connection.hpp>
#include <weir/ws/message.hpp>
#include <weir/ws/options.hpp>
