// SPDX-License-Identifier: MIT
#include <weir/detail/io/source.hpp>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/error.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"
#include "io/system.hpp"

namespace weir::detail {

void io_source::settle_home(const char* kind) {
  const std::string name = text();
  require_no_run(kind, name);
  home_.settle({kind, name}, "hand over the work by weir::on, not the object,", true);
}

/// REQUIRES: it has a result or an error.
void io_source::finish(io_wait& w) noexcept {
  w.leave();
  w.complete();
}

io_problem io_source::explain(int error) const {
  const std::error_code code(error, std::system_category());
  return {code, code.message()};
}

void io_source::ready(io_side side) noexcept {
  if (above_ != nullptr) return above_->ready_below(side);
  io_wait* const w = waiting(side);
  if (w != nullptr && w->poll()) finish(*w);
}

void io_source::end_wait(io_side side, const char* why) noexcept {
  io_wait* const w = waiting(side);
  if (w == nullptr) return;
  w->fail(errc::closed, why);
  finish(*w);
}

bool io_source::close_waits() noexcept {
  if (closed_) return false;
  closed_ = true;
  for (io_wait* w : waits_) {
    if (w == nullptr) continue;
    w->fail(errc::closed, "was closed meanwhile");
    finish(*w);
  }
  return true;
}

void io_source::require_idle() const noexcept {
  if (in_dead_world()) return;
  for (const io_wait* w : waits_)
    if (w != nullptr) fatal(text() + " was destroyed while " + w->what_ + " waits for it");
}

io_wait::~io_wait() {
  if (waiting_) leave();
}

void io_wait::leave() noexcept {
  waiting_ = false;
  source_->waits_[static_cast<std::size_t>(side_)] = nullptr;
  source_->unwatch(side_);
}

cancel_result io_wait::withdraw() noexcept {
  if (waiting_) leave();
  return cancel_result::done;
}

// Nothing that happens between the try and this can make it ready unseen: the loop's thread is
// here, and an edge that comes meanwhile is delivered later.
void io_wait::arm() noexcept {
  if (!may_try()) return complete();  // another arm of a race has taken the place
  waiting_ = true;
  source_->waits_[static_cast<std::size_t>(side_)] = this;
  if (const int error = source_->watch(side_); error != 0) {
    fail(error);
    leave();
    complete();
  }
}

void io_wait::refuse() noexcept {
  if (source_ == nullptr || source_->closed_) {
    fail(errc::closed, "is closed");
  } else {
    fail(errc::busy, "is in use: another operation of this kind waits");
  }
}

bool io_wait::fail(std::exception_ptr error) noexcept {
  failure_ = std::move(error);
  return true;
}

bool io_wait::fail(int error) noexcept {
  try {
    const io_problem found = source_->explain(error);
    const std::string text = std::string(what_) + ": " + source_->text() + ": " + found.text;
    return fail(std::make_exception_ptr(weir::error(found.code, text)));
  } catch (...) {
    return fail(std::current_exception());
  }
}

bool io_wait::fail(errc code, const char* text) noexcept {
  try {
    const std::string whose = source_ == nullptr ? "the socket or listener" : source_->text();
    return fail(make_error(code, std::string(what_) + ": " + whose + " " + text));
  } catch (...) {
    return fail(std::current_exception());
  }
}

// One that has ended may outlive its source, as an arm of an `all` whose other arms still wait.
void io_wait::describe(dump_line& line) const {
  line.add(what_);
  if (waiting_) line.add(" on ").add(source_->text());
}

}  // namespace weir::detail
