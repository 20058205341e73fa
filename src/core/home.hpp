// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>
#include <string>

#include <weir/detail/core/home.hpp>

namespace weir::detail {

/// Guards changes of an object's home, and reads of it on other threads.
std::mutex& home_mutex();

/// "queue 'orders'", or "queue 'unnamed'".
std::string text_of(const object_name& object);

}  // namespace weir::detail
