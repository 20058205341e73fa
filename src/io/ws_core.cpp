// SPDX-License-Identifier: MIT
#include "io/ws_core.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <weir/detail/core/duration.hpp>
#include <weir/detail/io/ws_read.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/time.hpp>

#include "core/door.hpp"
#include "core/error.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

namespace {

constexpr duration close_limit = std::chrono::seconds(5);
constexpr duration ws_linger_time = std::chrono::seconds(1);
/// What is received at once.
constexpr std::size_t receive_size = 16 * 1024;
/// A message up to this size is sent together with its head; a larger one of a client is masked in
/// pieces of it.
constexpr std::size_t joined_size = 64 * 1024;
/// Of a peer whose input is not read any more, before the socket is closed: unread input would
/// reset the connection and take the close frame with it.
constexpr std::size_t ws_max_discarded = 1024 * 1024;

}  // namespace

void check_ws_options(const ws::ws_options& options) {
  if (options.max_message < 1)
    raise(errc::invalid_argument, "ws_options: max_message is " +
                                      std::to_string(options.max_message) +
                                      "; give 1 or more, or unbounded");
  if (options.ping_every <= duration::zero())
    raise(errc::invalid_argument, "ws_options: ping_every is not positive");
}

ws_core::ws_core(io::socket socket, http_buffer in, role as, const ws::ws_options& options,
                 std::string subprotocol)
    : socket_(std::move(socket)),
      in_(std::move(in)),
      reader_(as == role::server),
      client_(as == role::client),
      subprotocol_(std::move(subprotocol)),
      max_message_(static_cast<std::uint64_t>(options.max_message)),
      ping_every_(options.ping_every),
      heard_(loop::here()->now()),
      pinged_(heard_) {
  arm_tick();
}

// Outside of its loop a timer must not be touched: if that loop has ended, it is not armed.
void ws_core::cancel(timer& t) noexcept {
  if (!t.armed()) return;
  if (home_.is_here()) {
    loop::here()->cancel_deadline(t);
  } else if (door_table::find_serial(home_.serial()) != nullptr) {
    fatal("ws::connection destroyed outside of its loop, which still runs");
  }
}

ws_core::~ws_core() {
  cancel(tick_);
  cancel(retry_);
  if (in_dead_world() || !home_.is_here() || source() == nullptr || source()->closed()) return;
  try {
    if (!ended() && !close_queued_) queue_close(ws_code::going_away, {});
    flush();
    std::array<std::byte, receive_size> ignored;
    for (std::size_t n = 0; n < ws_max_discarded;) {
      const io_try got = source()->read(ignored);
      if (got.error != 0 || got.bytes == 0) break;
      n += got.bytes;
    }
  } catch (...) {
    return;  // without memory for a close frame there is none
  }
}

// ------------------------------------------------------------------ reading

bool ws_core::receive() {
  if (ended()) return false;
  const io_try got = source()->read(in_.room(receive_size));
  if (got.error == EAGAIN) return false;
  if (got.error != 0 || got.bytes == 0) {
    end(ws_code::broken);
    return false;
  }
  in_.added(got.bytes);
  heard_ = loop::here()->now();
  return true;
}

void ws_core::retry_read_later() noexcept {
  if (!retry_.armed()) loop::here()->arm_watch(retry_, loop::here()->now());
}

void ws_core::on_retry() noexcept { source()->retry(io_side::read); }

bool ws_core::has_message() {
  decode(true);
  return message_ready_;
}

bool ws_core::has_piece() {
  decode(false);
  return has_data();
}

ws::message ws_core::take_message() {
  message_ready_ = false;
  return {reader_.binary(), std::exchange(pieces_, {})};
}

ws::piece ws_core::take_piece() {
  const bool last = std::exchange(message_ready_, false);
  in_pieces_ = !last;
  return {reader_.binary(), last, std::exchange(pieces_, {})};
}

// A message that is read in pieces has no limit: its reader decides.
void ws_core::decode(bool whole) {
  while (!ended() && !message_ready_ && !in_.empty() && (whole || pieces_.empty())) {
    const std::string_view bytes = in_.view();
    auto f = reader_.read({const_cast<char*>(bytes.data()), bytes.size()});
    if (!f.fault && whole && f.announced > max_message_)
      f.fault = {ws_code::too_long, "a message is longer than max_message"};
    if (f.fault) return fail(f.fault);
    if (f.consumed == 0 && f.what == ws_reader::kind::nothing) break;
    handle(f);
    in_.consume(f.consumed);
  }
  flush();
}

void ws_core::handle(const ws_reader::found& f) {
  switch (f.what) {
    case ws_reader::kind::nothing:
    case ws_reader::kind::pong:
      return;
    case ws_reader::kind::piece:
      pieces_ += f.data;
      message_ready_ = f.last;
      return;
    case ws_reader::kind::ping:
      pong_ = std::string(f.data);
      return;
    case ws_reader::kind::close:
      return peer_closed(f.data);
  }
}

void ws_core::peer_closed(std::string_view payload) {
  const ws_close said = read_ws_close(payload);
  if (said.fault) return fail(said.fault);
  said_ = said.reason;
  if (!close_queued_) queue_close(said.code, {});
  flush();
  end(said.code);
  if (!owes()) (void)source()->shutdown_write();
}

void ws_core::fail(ws_fault fault) {
  fault_ = fault;
  failed_ = true;
  if (!close_queued_) queue_close(fault.code, fault.text);
  flush();
  end(fault.code);
}

// What was read of a message that never ends is dropped; a whole one is still read.
void ws_core::end(int code) noexcept {
  if (code_ != 0) return;
  code_ = code;
  if (!message_ready_) pieces_.clear();
  if (closing_) changed_.set();
}

// If a reader waits, it gets what comes.
void ws_core::take_in() noexcept {
  if (source()->closed() || source()->has_wait(io_side::read)) return;
  try {
    decode(false);
    for (int i = 0; i < max_receives && !ended() && !has_data() && receive(); ++i) decode(false);
  } catch (...) {
    return;  // without memory the bytes stay where they are
  }
}

// ------------------------------------------------------------------ sending

ws_mask ws_core::new_mask() {
  return ws_mask(static_cast<std::uint32_t>(loop::here()->env().random()));
}

void ws_core::append(std::string& out, ws_opcode opcode, std::string_view payload) {
  if (client_) {
    ws_mask mask = new_mask();
    append_ws_frame(out, opcode, payload, &mask);
  } else {
    append_ws_frame(out, opcode, payload, nullptr);
  }
}

void ws_core::queue_close(int code, std::string_view reason) {
  close_ = ws_close_payload(code, reason);
  close_queued_ = true;
}

bool ws_core::owes() const noexcept {
  return !unsendable_ && (out_at_ < out_.size() || pong_ || ping_due_ || close_);
}

/// Moves control frames to `out_` if that is empty. False: nothing is to be sent.
bool ws_core::refill() {
  if (out_at_ < out_.size()) return true;
  out_.clear();
  out_at_ = 0;
  if (pong_) append(out_, ws_opcode::pong, *std::exchange(pong_, std::nullopt));
  if (std::exchange(ping_due_, false)) append(out_, ws_opcode::ping, {});
  if (close_) append(out_, ws_opcode::close, *std::exchange(close_, std::nullopt));
  return !out_.empty();
}

void ws_core::flush() noexcept {
  if (writing_ || unsendable_ || source()->closed()) return;
  try {
    while (refill()) {
      const io_try sent = source()->send(std::as_bytes(std::span(out_).subspan(out_at_)));
      if (sent.error == EAGAIN) return;
      unsendable_ = sent.error != 0;
      if (unsendable_) return;
      out_at_ += sent.bytes;
    }
  } catch (...) {
    return;  // without memory they are sent later
  }
}

/// A write under way. Whatever ends it, what was sent is known, and the next frame begins where
/// this one ends.
class ws_core::frame {
 public:
  frame(ws_core& core, ws_opcode opcode, std::span<const std::byte> payload)
      : core_(core), payload_(reinterpret_cast<const char*>(payload.data()), payload.size()) {
    core.writing_ = true;
    core.frame_.clear();
    if (core.client_) mask_ = core.new_mask();
    append_ws_head(core.frame_, opcode, payload.size(), core.client_ ? &mask_ : nullptr);
    if (core.client_ || payload.size() <= joined_size) add_piece();
    rest_ = core.frame_;
  }
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  ~frame() {
    core_.writing_ = false;
    if (begun_ && (!rest_.empty() || !payload_.empty())) keep_rest();
    core_.flush();
    if (core_.closing_) core_.changed_.set();
  }

  /// What is to be sent next; empty at the end.
  std::string_view next() {
    if (rest_.empty() && !payload_.empty()) {
      if (core_.client_) {
        core_.frame_.clear();
        add_piece();
        rest_ = core_.frame_;
      } else {
        rest_ = std::exchange(payload_, {});
      }
    }
    return rest_;
  }
  /// Some of it was sent.
  void sent(std::size_t n) noexcept {
    rest_.remove_prefix(std::min(n, rest_.size()));
    begun_ = begun_ || n > 0;
  }

 private:
  void add_piece() {
    const std::size_t n = std::min(payload_.size(), joined_size);
    const std::size_t at = core_.frame_.size();
    core_.frame_ += payload_.substr(0, n);
    payload_.remove_prefix(n);
    if (core_.client_) mask_.apply(std::span(core_.frame_).subspan(at));
  }
  void keep_rest() noexcept {
    try {
      std::string out;
      while (!next().empty()) {
        out += rest_;
        rest_ = {};
      }
      core_.out_ = std::move(out);
      core_.out_at_ = 0;
    } catch (...) {
      core_.unsendable_ = true;  // nothing can follow a frame that is not completed
    }
  }

  ws_core& core_;
  std::string_view payload_;  // what is not in `rest_`
  std::string_view rest_;
  ws_mask mask_;
  bool begun_ = false;
};

/// Sends `out_`, as a write.
class ws_core::owed {
 public:
  explicit owed(ws_core& core) noexcept : core_(core) { core.writing_ = true; }
  owed(const owed&) = delete;
  owed& operator=(const owed&) = delete;
  ~owed() {
    core_.writing_ = false;
    if (core_.closing_) core_.changed_.set();
  }

 private:
  ws_core& core_;
};

namespace {

/// Counts what a write_all has sent, also if it is cancelled or fails.
template <class Fn>
class counted_write {
 public:
  counted_write(io::socket& socket, Fn sent) noexcept : socket_(socket), sent_(sent) {
    socket.core()->written = 0;
  }
  counted_write(const counted_write&) = delete;
  counted_write& operator=(const counted_write&) = delete;
  ~counted_write() { sent_(socket_.written()); }

 private:
  io::socket& socket_;
  Fn sent_;
};

}  // namespace

void ws_core::make_way() noexcept {
  if (std::exchange(discarding_, false))
    source()->end_wait(io_side::read, "is read by the caller again");
}

void ws_core::require_writable(const char* what) {
  source()->require_home("ws::connection");
  const std::string whose = std::string(what) + ": the connection to " + socket_.peer().str();
  if (ended() || unsendable_ || source()->closed())
    raise(errc::closed,
          whose + " has ended with code " + std::to_string(ended() ? code_ : ws_code::broken));
  if (close_queued_) raise(errc::closed, whose + " is being closed");
  if (writing_) raise(errc::busy, whose + " is in use: another write waits");
}

task<> ws_core::send_owed() {
  const owed mark(*this);
  while (refill()) {
    const counted_write count(socket_, [this](std::size_t n) noexcept { out_at_ += n; });
    co_await socket_.write_all(std::string_view(out_).substr(out_at_));
  }
}

task<> ws_core::write(ws_opcode opcode, std::span<const std::byte> payload) {
  require_writable("write");
  take_in();
  require_writable("write");
  try {
    if (owes()) {
      co_await send_owed();
      require_writable("write");  // it may have been closed meanwhile
    }
    frame f(*this, opcode, payload);
    for (std::string_view rest = f.next(); !rest.empty(); rest = f.next()) {
      const counted_write count(socket_, [&](std::size_t n) noexcept { f.sent(n); });
      co_await socket_.write_all(rest);
    }
  } catch (const error& e) {
    if (e.code() != errc::closed && e.code() != errc::busy) unsendable_ = true;
    throw;
  }
}

// ------------------------------------------------------------------ closing

void ws_core::go_away() noexcept {
  if (ended() || close_queued_) return;
  try {
    queue_close(ws_code::going_away, "the server is shutting down");
    flush();
  } catch (...) {
    return;  // the end of the drain closes it
  }
}

task<> ws_core::say_close_and_wait() {
  while (owes()) {
    changed_.reset();
    if (writing_) {
      co_await changed_.wait();
    } else {
      co_await send_owed();
    }
  }
  while (!ended()) {
    changed_.reset();
    bool another_reads = false;
    try {
      discarding_ = true;
      const struct at_end {
        bool& flag;
        ~at_end() { flag = false; }
      } mark{discarding_};
      (void)co_await pending<ws_piece_wait>({this, true});
    } catch (const error&) {
      another_reads = true;
    }
    if (another_reads && !ended()) co_await changed_.wait();
  }
}

task<> ws_core::close(int code, std::string reason) {
  source()->require_home("ws::connection");
  if (!is_ws_close_code(code))
    raise(errc::invalid_argument,
          "close: code " + std::to_string(code) + " must not be sent; use 1000, or 3000 to 4999");
  if (reason.size() > max_control_payload - 2 || !is_utf8(reason))
    raise(errc::invalid_argument, "close: the reason is not UTF-8, or longer than 123 bytes");
  if (ended() && !owes()) co_return;
  if (!close_queued_) queue_close(code, reason);
  struct mark {
    explicit mark(bool& flag) : was(std::exchange(flag, true)), of(flag) {}
    ~mark() { of = was; }
    bool was;
    bool& of;
  } closing(closing_);
  auto said = [this]() -> task<> { co_await say_close_and_wait(); };
  const auto how = co_await settle(with_timeout(close_limit, said));
  if (!how.is_value()) end(ws_code::broken);
  if (!source()->closed()) (void)source()->shutdown_write();
}

task<> ws_core::finish(int code) {
  co_await close(code, {});
  if (failed_) co_await linger();
  source()->close();
}

// Input that is not read when the socket is closed resets the connection, and the peer may not see
// why it was closed.
task<> ws_core::linger() {
  const time_point limit = now() + ws_linger_time;
  std::array<std::byte, 4096> ignored;
  try {
    for (std::size_t n = 0; n < ws_max_discarded;) {
      const std::size_t got = co_await with_deadline(limit, socket_.read_some(ignored));
      if (got == 0) co_return;
      n += got;
    }
  } catch (const error&) {
    co_return;  // the peer has gone, or does not end its side
  }
}

// ------------------------------------------------------------------ liveness

void ws_core::arm_tick() noexcept {
  const time_point ping = saturating_add(pinged_, ping_every_);
  const time_point gone = saturating_add(saturating_add(heard_, ping_every_), ping_every_);
  const time_point next = std::min(ping, gone);
  if (next != time_point::max()) loop::here()->arm_watch(tick_, next);
}

void ws_core::on_tick() noexcept {
  if (ended() || source()->closed()) return;
  take_in();
  if (ended()) return;
  const time_point time = loop::here()->now();
  if (has_data()) heard_ = time;  // it waits for its reader
  if (time - heard_ >= ping_every_ && time - heard_ - ping_every_ >= ping_every_) {
    end(ws_code::broken);
    const char* const why = "is gone: nothing has come for twice ping_every";
    source()->end_wait(io_side::read, why);
    source()->end_wait(io_side::write, why);
    source()->close();
    return;
  }
  if (time - pinged_ >= ping_every_) {
    pinged_ = time;
    ping_due_ = !close_queued_;
    flush();
  }
  arm_tick();
}

}  // namespace weir::detail
