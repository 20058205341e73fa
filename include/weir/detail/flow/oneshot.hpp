// SPDX-License-Identifier: MIT
// The machinery of <weir/oneshot.hpp>.
#pragma once

#include <exception>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/future.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

/// The state shared by a oneshot and its futures.
template <class T>
struct oneshot_core final : future_core, frame_allocated {
  outcome_base& result() noexcept override { return out; }
  void dispose() noexcept override { delete this; }
  void describe(dump_line& line) const override;
  outcome<T> out;
};

void describe_oneshot(dump_line& line);
void settle_oneshot_home(home& h, future_core& core);
/// The oneshot is destroyed unset.
void abandon_oneshot(future_core& core) noexcept;
void require_oneshot_error(const std::exception_ptr& error);

template <class T>
void oneshot_core<T>::describe(dump_line& line) const {
  describe_oneshot(line);
}

}  // namespace detail
}  // namespace weir
