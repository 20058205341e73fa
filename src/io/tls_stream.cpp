// SPDX-License-Identifier: MIT
#include "io/tls_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>

#include "io/tls_reason.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ the bytes of OpenSSL

namespace {

tls_stream& stream_of(BIO* bio) noexcept { return *static_cast<tls_stream*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* data, int size) {
  stream_of(bio).put(std::as_bytes(std::span(data, static_cast<std::size_t>(size))));
  return size;
}

int bio_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const io_try got =
      stream_of(bio).get(std::as_writable_bytes(std::span(into, static_cast<std::size_t>(size))));
  if (got.error == EAGAIN) BIO_set_retry_read(bio);
  return got.error != 0 ? -1 : static_cast<int>(got.bytes);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return stream_of(bio).at_end() ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* new_bio_method() {
  BIO_METHOD* const made =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a stream of weir");
  if (made == nullptr) throw std::bad_alloc();
  BIO_meth_set_write(made, bio_write);
  BIO_meth_set_read(made, bio_read);
  BIO_meth_set_ctrl(made, bio_control);
  return made;
}

BIO* new_bio(tls_stream& s) {
  static BIO_METHOD* const method = new_bio_method();  // sockets may outlive static objects
  BIO* const made = BIO_new(method);
  if (made == nullptr) throw std::bad_alloc();
  BIO_set_data(made, &s);
  BIO_set_init(made, 1);
  return made;
}

}  // namespace

void tls_stream::put(std::span<const std::byte> bytes) noexcept {
  std::size_t taken = 0;
  if (out_.empty() && write_error_ == 0) {
    const io_try sent = below_->send(bytes);
    taken = sent.bytes;
    if (sent.error != 0 && sent.error != EAGAIN) write_error_ = sent.error;
  }
  if (write_error_ != 0) return;  // nothing is sent any more
  try {
    if (taken < bytes.size()) out_.push_back(bytes.subspan(taken));
  } catch (...) {
    write_error_ = ENOMEM;
  }
  unsent = !out_.empty();
}

io_try tls_stream::get(std::span<std::byte> into) noexcept {
  if (out_.view().size() > max_unsent) return {0, EAGAIN};
  const io_try got = below_->receive(into);
  if (got.error != 0 && got.error != EAGAIN) read_error_ = got.error;
  if (got.error == 0 && got.bytes == 0) ended_below_ = true;
  return got;
}

bool tls_stream::push_out() noexcept {
  while (!out_.empty() && write_error_ == 0) {
    const io_try sent = below_->send(std::as_bytes(std::span(out_.view())));
    if (sent.error == EAGAIN) return false;
    write_error_ = sent.error;
    out_.drop(sent.bytes);
  }
  if (write_error_ != 0) out_.drop(out_.view().size());
  unsent = false;
  return true;
}

// ------------------------------------------------------------------ operations

tls_stream::tls_stream(std::unique_ptr<stream_core> below, tls_settings_ref settings, ssl_ref ssl,
                       std::string name)
    : below_(std::move(below)),
      settings_(std::move(settings)),
      ssl_(std::move(ssl)),
      name_(std::move(name)) {
  BIO* const bytes = new_bio(*this);
  SSL_set_bio(ssl_.get(), bytes, bytes);
  below_->carry(*this);
}

tls_stream::~tls_stream() {
  require_idle();
  close();
  if (destroyed_ != nullptr) *destroyed_ = true;
}

io_try tls_stream::receive(std::span<std::byte> into) noexcept {
  if (failure_ != 0) return {0, failure_};
  (void)push_out();
  if (ended_) return {0, 0};
  std::size_t n = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &n);
  const io_try got = result == 1 ? io_try{n, 0} : judge(result);
  note_handshake(io_side::write);
  return got;
}

io_try tls_stream::send(std::span<const std::byte> bytes) noexcept {
  if (failure_ != 0) return {0, failure_};
  if (shut_) return {0, EPIPE};
  if (!push_out()) return {0, EAGAIN};
  if (write_error_ != 0) return {0, write_error_};
  std::size_t n = 0;
  ERR_clear_error();
  if (shaken_ && !std::exchange(ticketed_, true)) (void)SSL_new_session_ticket(ssl_.get());
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), std::min(bytes.size(), max_record), &n);
  const io_try sent = result == 1 ? io_try{n, 0} : judge(result);
  note_handshake(io_side::read);
  if (sent.error == 0 && write_error_ != 0) return {0, write_error_};
  return sent;
}

io_try tls_stream::flush() noexcept {
  if (!push_out()) return {0, EAGAIN};
  return {0, write_error_};
}

io_try tls_stream::handshake() noexcept {
  if (failure_ != 0) return {0, failure_};
  (void)push_out();
  if (!shaken_) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) return judge(result);
    note_handshake(io_side::write);
  }
  return flush();
}

void tls_stream::note_handshake(io_side other) noexcept {
  if (shaken_ || failure_ != 0 || SSL_is_init_finished(ssl_.get()) == 0) return;
  shaken_ = true;
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &size);
  try {
    alpn_.assign(reinterpret_cast<const char*>(protocol), size);
  } catch (...) {
    (void)fail_for(ENOMEM);
  }
  if (shut_) send_close_notify();
  if (waiting(other) != nullptr) below_->stir();
}

io_try tls_stream::judge(int result) noexcept {
  const int kind = SSL_get_error(ssl_.get(), result);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return {0, EAGAIN};
  if (kind == SSL_ERROR_ZERO_RETURN && shaken_) {
    ended_ = true;
    return {0, 0};
  }
  if (read_error_ != 0) return fail_for(read_error_);
  try {
    if (!ended_below_ && kind != SSL_ERROR_ZERO_RETURN)
      return fail_because(tls_reason(ssl_.get(), name_, !shaken_));
    if (shaken_) return fail_for(truncated);
    return fail_because("it has closed the connection during the handshake");
  } catch (...) {
    return fail_for(ENOMEM);
  }
}

io_try tls_stream::fail_for(int error) noexcept {
  ERR_clear_error();
  failure_ = error;
  return {0, error};
}

io_try tls_stream::fail_because(std::string reason) noexcept {
  why_ = std::move(reason);
  return fail_for(failed);
}

io_problem tls_stream::explain(int error) const {
  if (error == failed) return {make_error_code(errc::tls_failed), why_};
  if (error == truncated)
    return {make_error_code(errc::tls_truncated),
            "the connection has ended without close_notify, so bytes may be missing"};
  return stream_core::explain(error);
}

std::string tls_stream::text() const {
  return name_.empty() ? stream_core::text() : stream_core::text() + " (" + name_ + ")";
}

// ------------------------------------------------------------------ news of the carrier

void tls_stream::ready_below(io_side side) noexcept {
  if (side == io_side::hangup) return ready(side);
  bool destroyed = false;
  destroyed_ = &destroyed;
  ready(io_side::read);
  if (!destroyed) ready(io_side::write);
  if (!destroyed) destroyed_ = nullptr;
}

bool tls_stream::has_arrived() noexcept {
  std::byte ignored{};
  return closed() || read({&ignored, 1}).error != EAGAIN || below_->has_arrived();
}

// ------------------------------------------------------------------ the end

void tls_stream::send_close_notify() noexcept {
  if (notified_ || !shaken_ || failure_ != 0) return;
  notified_ = true;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

int tls_stream::shutdown_write() noexcept {
  shut_ = true;
  (void)push_out();
  send_close_notify();
  return 0;
}

void tls_stream::cut() noexcept {
  cut_ = true;
  below_->cut();
}

/// A connection that is closed with unread input is reset, and what was sent last may be lost.
/// Servers send tickets that a client which does not read never asked for.
void tls_stream::discard_input() noexcept {
  constexpr int most = 16;
  std::array<std::byte, 4096> ignored;
  for (int i = 0; i < most; ++i) {
    const io_try got = below_->receive(ignored);
    if (got.error != 0 || got.bytes == 0) return;
  }
}

void tls_stream::close() noexcept {
  if (!close_waits()) return;
  shut_ = true;
  if (!cut_) {
    (void)push_out();
    send_close_notify();
    if (shaken_) discard_input();
  }
  below_->close();
  ssl_.reset();
  settings_.reset();
}

}  // namespace weir::detail
