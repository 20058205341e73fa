// SPDX-License-Identifier: MIT
#include <weir/ws/connection.hpp>

#include "core/error.hpp"
#include "io/ws_core.hpp"

namespace weir {

namespace detail {

// ------------------------------------------------------------------ waits

ws_wait::ws_wait(args&& a, const char* what) noexcept
    : io_operation(a.core == nullptr ? nullptr : a.core->source(), io_side::read, what),
      core_(a.core),
      discards_(a.discards) {}

bool ws_wait::try_now() noexcept {
  const bool waited = waits();
  bool over = true;
  try {
    over = try_core();
  } catch (...) {
    fail(std::current_exception());
  }
  if (over && waited) core_->reader_left();
  return over;
}

bool ws_wait::try_core() {
  if (core_ != nullptr && !discards_) core_->make_way();
  if ((core_ == nullptr || !core_->ended()) && !may_try()) return true;
  for (int i = 0; i < ws_core::max_receives; ++i) {
    if (take_ready(*core_)) return true;
    if (const auto fault = core_->take_fault())
      return fail(fault->code == ws_code::too_long ? errc::too_long : errc::bad_data, fault->text);
    if (core_->ended()) return true;
    if (!core_->receive() && !core_->ended()) return false;
  }
  core_->retry_read_later();
  return false;
}

// Since it tried, a close may have begun to read.
void ws_wait::link() {
  if (!discards_) core_->make_way();
  io_operation::link();
}

cancel_result ws_wait::withdraw() noexcept {
  const bool waited = waits();
  const cancel_result how = io_operation::withdraw();
  if (waited) core_->reader_left();
  return how;
}

bool ws_read_wait::take_ready(ws_core& core) {
  if (core.in_pieces() && !core.ended())
    return fail(errc::busy, "is in the middle of a message that is read in pieces");
  if (!core.has_message()) return false;
  message_.emplace(core.take_message());
  return true;
}

bool ws_piece_wait::take_ready(ws_core& core) {
  if (!core.has_piece()) return false;
  piece_.emplace(core.take_piece());
  return true;
}

}  // namespace detail

namespace ws {

connection::connection(std::unique_ptr<detail::ws_core> core) noexcept : core_(std::move(core)) {}
connection::connection(connection&&) noexcept = default;
connection& connection::operator=(connection&&) noexcept = default;
connection::~connection() = default;

detail::ws_core* connection::use() {
  if (core_ != nullptr) core_->source()->require_home("ws::connection");
  return core_.get();
}

namespace {

detail::ws_core& open(detail::ws_core* core, const char* what) {
  if (core == nullptr)
    detail::raise(errc::closed, std::string(what) + ": the ws::connection was moved from");
  return *core;
}

stream<message> messages_of(connection& from) {
  for (;;) {
    std::optional<message> next = co_await from.read();
    if (!next) co_return;
    co_yield std::move(*next);
  }
}

}  // namespace

stream<message> connection::messages() { return messages_of(*this); }

task<> connection::write_text(std::string_view text) {
  detail::ws_core& core = open(use(), "write_text");
  if (!detail::is_utf8(text))
    detail::raise(errc::invalid_argument, "write_text: the text is not UTF-8; use write_binary");
  return core.write(detail::ws_opcode::text, std::as_bytes(std::span(text)));
}

task<> connection::write_binary(std::span<const std::byte> bytes) {
  return open(use(), "write_binary").write(detail::ws_opcode::binary, bytes);
}

task<> connection::ping(std::string_view payload) {
  detail::ws_core& core = open(use(), "ping");
  if (payload.size() > detail::max_control_payload)
    detail::raise(errc::invalid_argument, "ping: a payload has at most 125 bytes");
  return core.write(detail::ws_opcode::ping, std::as_bytes(std::span(payload)));
}

task<> connection::close(int code, std::string_view reason) {
  return open(use(), "close").close(code, std::string(reason));
}

int connection::close_code() const noexcept { return core_ == nullptr ? 0 : core_->code(); }

std::string_view connection::close_reason() const noexcept {
  return core_ == nullptr ? std::string_view() : core_->reason();
}

std::string_view connection::subprotocol() const noexcept {
  return core_ == nullptr ? std::string_view() : core_->subprotocol();
}

io::endpoint connection::peer() const {
  return core_ == nullptr ? io::endpoint() : core_->socket().peer();
}

}  // namespace ws
}  // namespace weir
