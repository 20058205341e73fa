// SPDX-License-Identifier: MIT
#include <weir/broadcast.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

std::int64_t require_capacity(std::int64_t capacity, const char* what) {
  if (capacity < 1 || capacity > std::int64_t{0xffffffff})
    raise(errc::invalid_argument, std::string(what) + ": a capacity of " +
                                      std::to_string(capacity) + " is not in 1..4294967295");
  return capacity;
}

void require_subscribe_options(const subscribe_options& options) {
  if (options.overflow == overflow::reject || options.overflow == overflow::stop ||
      options.overflow > overflow::stop)
    raise_overflow("subscribe", options.overflow,
                   "wait, drop_oldest, drop_newest, conflate, disconnect or fail_emitter");
  if (options.replay < 0)
    raise(errc::invalid_argument,
          "subscribe: a replay of " + std::to_string(options.replay) + "; give 0 or more");
}

void require_broadcast_error(const std::exception_ptr& error) {
  if (error == nullptr)
    raise(errc::invalid_argument, "broadcast: fail without an error; give one, or call close()");
}

void settle_broadcast_home(home& h) {
  h.settle({"broadcast", {}}, "send its items through channels", false);
}

void lose_reader(bool& reads) noexcept {
  if (!in_dead_world()) fatal("a subscription was destroyed while a next() is pending");
  reads = false;
}

void raise_lagged() {
  raise(errc::lagged,
        "the subscriber fell behind the broadcast and was disconnected; read faster, raise the "
        "capacity, or choose another overflow");
}

void raise_emit_closed() {
  raise(errc::queue_closed, "broadcast is closed: it takes no more items");
}

void raise_emitter_full() {
  raise(errc::queue_full,
        "broadcast: a subscriber with overflow::fail_emitter has no room for another item");
}

void describe_broadcast(dump_line& line, const char* what) { line.add(what).add(" broadcast"); }

}  // namespace weir::detail
