// SPDX-License-Identifier: MIT
#include <weir/stream/source.hpp>

#include <weir/stream/batch.hpp>
#include <weir/stream/rate.hpp>

#include <istream>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/loop.hpp"

namespace weir::detail {

void describe_never_stream(dump_line& line) { line.add("a stream without items"); }

interval_stage::interval_stage(duration every) : every_(every) {
  if (every <= duration::zero())
    raise(errc::invalid_argument, "interval: a length of " + std::to_string(every.count()) +
                                      " ns is not positive; give more than 0");
}

// When late, yields the latest elapsed tick and skips the earlier ones.
pull interval_stage::poll(std::optional<std::int64_t>& out, composite& owner) {
  if (loop::here() == nullptr) raise_nothing_wakes();
  loop& here = *loop::here();
  if (!due_) due_ = saturating_add(here.now(), every_);
  if (here.now() < *due_) {
    if (!tick_.made()) tick_.make(ticks(*due_));
    if (!tick_.poll(owner)) return pull::pending;
    tick_.take();
  }
  tick_.drop();
  const std::int64_t late = (here.now() - *due_) / every_;
  if (late > 0) here.emit("interval_skipped", "interval", static_cast<std::uint64_t>(late));
  out.emplace(next_ + late);
  next_ += late + 1;
  due_ = saturating_add(*due_, every_ * (late + 1));
  return pull::value;
}

pull lines_stage::poll(std::optional<std::string>& out, composite&) {
  std::string line;
  if (!std::getline(*in_, line)) {
    if (in_->bad()) raise(errc::abandoned, "lines: the stream could not be read");
    return pull::end;
  }
  out.emplace(std::move(line));
  return pull::value;
}

std::int64_t require_count(std::int64_t count, const char* what) {
  if (count < 0)
    raise(errc::invalid_argument,
          std::string(what) + ": " + std::to_string(count) + " items; give 0 or more");
  return count;
}

std::int64_t require_size(std::int64_t size, const char* what) {
  if (size < 1)
    raise(errc::invalid_argument,
          std::string(what) + ": a size of " + std::to_string(size) + "; give 1 or more");
  return size;
}

duration require_length(duration length, const char* what) {
  if (length < duration::zero())
    raise(errc::invalid_argument, std::string(what) + ": a length of " +
                                      std::to_string(length.count()) + " ns; give 0 or more");
  return length;
}

void raise_item_timeout(duration limit) {
  throw timeout_error(
      "timeout_each: no item within " +
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) + " ms");
}

void emit_throttled(std::uint64_t dropped) noexcept {
  if (loop* here = loop::here()) here->emit("throttled", "stream", dropped);
}

duration require_positive(duration length, const char* what) {
  if (length <= duration::zero())
    raise(errc::invalid_argument, std::string(what) + ": a length of " +
                                      std::to_string(length.count()) +
                                      " ns is not positive; give more than 0");
  return length;
}

void emit_dropped(const char* object, std::uint64_t count) noexcept {
  loop::here()->emit("dropped", object, count);
}

overflow require_buffer_policy(overflow policy) {
  if (policy != overflow::wait && policy != overflow::drop_oldest &&
      policy != overflow::drop_newest && policy != overflow::conflate)
    raise_overflow("buffer", policy, "wait, drop_oldest, drop_newest or conflate");
  return policy;
}

}  // namespace weir::detail
