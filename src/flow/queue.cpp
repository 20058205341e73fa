// SPDX-License-Identifier: MIT
#include <weir/queue.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir::detail {

bool values_come_back() noexcept { return !in_dead_world(); }

queue_base::queue_base(std::int64_t capacity, const queue_options& options)
    : capacity_(capacity), name_(options.name) {
  if (capacity < 0)
    raise(errc::invalid_argument, text_of(self()) + ": a capacity of " + std::to_string(capacity) +
                                      " is negative; give 0 (every push waits for a next) or "
                                      "more, or unbounded");
}

queue_base::~queue_base() {
  consumers_.require_empty(self());
  producers_.require_empty(self());
}

void queue_base::settle_home() { home_.settle(self(), "use a channel", false); }

void queue_base::raise_closed() const {
  raise(errc::queue_closed, text_of(self()) + " is closed: it takes no more values");
}

void queue_base::require_error(const std::exception_ptr& error) const {
  if (error == nullptr)
    raise(errc::invalid_argument,
          text_of(self()) + ": fail without an error; give one, or call close()");
}

void queue_base::describe(dump_line& line, const char* what, std::size_t size) const {
  line.add(what).add(" queue").add_name(name_.view());
  line.add(" (").add(static_cast<std::uint64_t>(size));
  if (capacity_ != std::int64_t{unbounded})
    line.add(" of ").add(static_cast<std::uint64_t>(capacity_));
  line.add(")");
}

}  // namespace weir::detail
