// SPDX-License-Identifier: MIT
#include <weir/detail/io/stream_core.hpp>

#include <algorithm>
#include <array>

#include <weir/detail/core/dump_line.hpp>
#include <weir/io/socket.hpp>

#include "core/error.hpp"
#include "io/system.hpp"

namespace weir::detail {

std::size_t kept_bytes::take(std::span<std::byte> into) noexcept {
  const std::size_t n = std::min(into.size(), text_.size() - begin_);
  std::memcpy(into.data(), text_.data() + begin_, n);
  drop(n);
  return n;
}

void kept_bytes::drop(std::size_t n) noexcept {
  begin_ += n;
  if (begin_ < text_.size()) return;
  // What was read is not needed any more; a large buffer is not kept for a socket that may idle.
  text_.clear();
  if (text_.capacity() > 4096) text_.shrink_to_fit();
  begin_ = 0;
}

void kept_bytes::push_front(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  text_.replace(0, begin_, text, bytes.size());
  begin_ = 0;
}

void kept_bytes::push_back(std::span<const std::byte> bytes) {
  if (begin_ > 0 && begin_ >= text_.size() / 2) {
    text_.erase(0, begin_);
    begin_ = 0;
  }
  text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string stream_core::text() const { return "socket " + peer().str(); }

namespace {

stream_core& core_of(io_source* source) noexcept { return static_cast<stream_core&>(*source); }

}  // namespace

// ------------------------------------------------------------------ read_some

read_some_wait::read_some_wait(args&& a) noexcept
    : io_operation(a.core, io_side::read, "read_some"), into_(a.into) {}

bool read_some_wait::try_now() noexcept {
  if (!may_try()) return true;
  if (into_.empty())
    return fail(errc::invalid_argument, "cannot be read into an empty span; give it room");
  const io_try got = core_of(source_).read(into_);
  if (got.error == EAGAIN) return false;
  if (got.error != 0) return fail(got.error);
  bytes_ = got.bytes;
  return true;
}

// ------------------------------------------------------------------ read_exactly

read_exactly_wait::read_exactly_wait(args&& a) noexcept
    : io_operation(a.core, io_side::read, "read_exactly"), into_(a.into) {}

// What came is given back when the operation fails, and is in the span all the same.
void read_exactly_wait::give_back() {
  core_of(source_).kept.push_front(into_.first(got_));
  got_ = 0;
}

bool read_exactly_wait::try_now() noexcept {
  if (!may_try()) return true;
  try {
    while (got_ < into_.size()) {
      const io_try got = core_of(source_).read(into_.subspan(got_));
      if (got.error == EAGAIN) return false;
      got_ += got.bytes;
      if (got.error == 0 && got.bytes > 0) continue;
      const std::string ended = "has ended after " + std::to_string(got_) + " of " +
                                std::to_string(into_.size()) + " bytes";
      give_back();
      return got.error != 0 ? fail(got.error) : fail(errc::end_of_stream, ended.c_str());
    }
  } catch (...) {
    return fail(std::current_exception());
  }
  return true;
}

cancel_result read_exactly_wait::withdraw() noexcept {
  if (got_ > 0) give_back();
  return io_operation::withdraw();
}

// ------------------------------------------------------------------ read_until

read_until_wait::read_until_wait(args&& a) noexcept
    : io_operation(a.core, io_side::read, "read_until"), delimiter_(a.delimiter), max_(a.max) {}

// Everything that was received is in `kept`, until it is found to contain the delimiter.
bool read_until_wait::find() {
  kept_bytes& kept = core_of(source_).kept;
  const std::string_view seen = kept.view().substr(0, max_);
  const std::size_t at = seen.find(delimiter_, looked_);
  if (at != std::string_view::npos) {
    line_.assign(seen.substr(0, at + delimiter_.size()));
    kept.drop(line_.size());
    return true;
  }
  if (seen.size() >= delimiter_.size()) looked_ = seen.size() - delimiter_.size() + 1;
  if (seen.size() < max_) return false;
  const std::string longer = "has no delimiter within " + std::to_string(max_) +
                             " bytes; allow more, or read the bytes by read_some";
  return fail(errc::too_long, longer.c_str());
}

// True: it has ended or must wait; `wait` tells which.
bool read_until_wait::receive_more() {
  std::array<std::byte, 4096> piece;
  const io_try got = core_of(source_).receive(piece);
  if (got.error == EAGAIN) return false;
  if (got.error != 0) return fail(got.error);
  if (got.bytes == 0) {
    const std::string ended = "has ended before the delimiter, after " +
                              std::to_string(core_of(source_).kept.view().size()) + " bytes";
    return fail(errc::end_of_stream, ended.c_str());
  }
  core_of(source_).kept.push_back(std::span(piece).first(got.bytes));
  return true;
}

bool read_until_wait::try_now() noexcept {
  if (!may_try()) return true;
  try {
    if (delimiter_.empty() || max_ == 0)
      return fail(errc::invalid_argument, "needs a delimiter and a maximum of 1 or more");
    if (!waits()) looked_ = 0;  // others may have read since the last try
    while (!find()) {
      if (!receive_more()) return false;
      if (failed()) return true;
    }
  } catch (...) {
    return fail(std::current_exception());
  }
  return true;
}

// ------------------------------------------------------------------ write_all

write_all_wait::write_all_wait(args&& a) noexcept
    : io_operation(a.core, io_side::write, "write_all"), bytes_(a.bytes) {}

bool write_all_wait::try_now() noexcept {
  if (!may_try()) return true;
  stream_core& core = core_of(source_);
  if (done_ == 0) core.written = 0;
  while (done_ < bytes_.size()) {
    const io_try sent = core.send(bytes_.subspan(done_));
    if (sent.error == EAGAIN) return false;
    if (sent.error != 0) return fail_partly(sent.error);
    done_ += sent.bytes;
    core.written = done_;
  }
  if (!core.unsent) [[likely]]
    return true;
  const io_try rest = core.flush();
  if (rest.error == EAGAIN) return false;
  return rest.error == 0 || fail_partly(rest.error);
}

bool write_all_wait::fail_partly(int error) noexcept {
  try {
    const io_problem found = source_->explain(error);
    const std::string text = "write_all: " + source_->text() + ": " + found.text + " after " +
                             std::to_string(done_) + " of " + std::to_string(bytes_.size()) +
                             " bytes";
    return fail(std::make_exception_ptr(io::partial_write(found.code, text, done_)));
  } catch (...) {
    return fail(std::current_exception());
  }
}

// ------------------------------------------------------------------ hangup

hangup_wait::hangup_wait(args&& a) noexcept : io_operation(a.core, io_side::hangup, "hangup") {}

bool hangup_wait::try_now() noexcept { return !may_try() || core_of(source_).hung_up(); }

// ------------------------------------------------------------------ handshake

handshake_wait::handshake_wait(args&& a) noexcept
    : io_operation(a.core, io_side::read, "TLS handshake") {}

bool handshake_wait::try_now() noexcept {
  if (!may_try()) return true;
  const io_try shaken = core_of(source_).handshake();
  if (shaken.error == EAGAIN) return false;
  return shaken.error == 0 || fail(shaken.error);
}

void no_wait::describe(dump_line& line) const { line.add("nothing"); }

}  // namespace weir::detail
