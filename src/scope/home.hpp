// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>
#include <string>

#include <weir/detail/home.hpp>

namespace weir::detail {

/// Held while a home passes on, and by whoever must know a home on another thread.
std::mutex& home_mutex();

/// "queue 'orders'", or "queue 'unnamed'".
std::string text_of(const object_name& object);

}  // namespace weir::detail
