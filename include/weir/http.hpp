// SPDX-License-Identifier: MIT
// All of HTTP/1.1.
#pragma once

#include <weir/http/client.hpp>
#include <weir/http/event.hpp>
#include <weir/http/headers.hpp>
#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/http/router.hpp>
#include <weir/http/serve.hpp>
#include <weir/http/traceparent.hpp>
