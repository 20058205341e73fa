// SPDX-License-Identifier: MIT
#include <weir/oneshot.hpp>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/error.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void describe_oneshot(dump_line& line) { line.add("oneshot"); }

void settle_oneshot_home(home& h, future_core& core) {
  h.settle({"oneshot", {}}, "use a channel", false);
  core.home = h.serial();
}

void abandon_oneshot(future_core& core) noexcept {
  if (in_dead_world()) return;
  if (core.waiters != nullptr && core.home != current_loop_serial())
    fatal("oneshot destroyed on another loop than the one where fibers wait for it");
  core.result().set_error(
      make_error(errc::abandoned, "oneshot destroyed before anything was sent"));
  core.settle_now();
}

void require_oneshot_error(const std::exception_ptr& error) {
  if (error == nullptr)
    raise(errc::invalid_argument, "oneshot: fail without an error; give one, or send a value");
}

}  // namespace weir::detail
