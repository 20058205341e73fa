// SPDX-License-Identifier: MIT
//
// Many connections on one thread, each with one request under way. Every answer is checked. The
// thread asks epoll again and again for a while before it sleeps, so a trip of a fast server does
// not include the client's wake-up.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/server_process.hpp"
#include "support/measure.hpp"

namespace bench {

/// What is sent, and what an answer to it is.
class protocol {
 public:
  virtual ~protocol() = default;
  virtual std::string_view request() const = 0;
  /// The first one of a connection.
  virtual std::string_view first_request() const { return request(); }
  /// How long the answer is that begins with `seen`; 0 if that cannot be told yet. Gives up on one
  /// that is wrong.
  virtual std::size_t answer_size(std::string_view seen) = 0;
  virtual void check(std::string_view answer) = 0;
};

class echo_protocol final : public protocol {
 public:
  explicit echo_protocol(std::size_t size) : message_(size, '\0') {
    for (std::size_t i = 0; i < size; ++i)
      message_[i] = static_cast<char>('a' + scatter(int(i)) % 26);
  }
  std::string_view request() const override { return message_; }
  std::size_t answer_size(std::string_view) override { return message_.size(); }
  void check(std::string_view answer) override {
    errno = 0;
    if (answer != message_) give_up("an echo differs from its message");
  }

 private:
  std::string message_;
};

/// GET / over a kept connection; the answer is 200 with a content-length and the body that every
/// server here sends. The whole header is read once; answers of the same length that begin alike
/// have it in the same place, because only the date changes.
class http_protocol final : public protocol {
 public:
  std::string_view request() const override { return "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"; }
  std::size_t answer_size(std::string_view seen) override {
    if (size_ != 0 && seen.size() == size_) return size_;
    const std::size_t end = seen.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    size_ = end + 4 + content_length(seen.substr(0, end + 2));
    return size_;
  }
  void check(std::string_view answer) override {
    errno = 0;
    if (!answer.starts_with("HTTP/1.1 200 ") || !answer.ends_with("\r\n\r\nhello, world\n"))
      give_up("not the answer: '" + std::string(answer) + "'");
  }

 private:
  static std::size_t content_length(std::string_view head) {
    std::string lower(head);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::size_t at = lower.find("\r\ncontent-length:");
    errno = 0;
    if (at == std::string::npos) give_up("an answer has no content-length: '" + lower + "'");
    return static_cast<std::size_t>(std::atoll(lower.c_str() + at + 17));
  }

  std::size_t size_ = 0;
};

/// A message over WebSocket, which the server sends back; the first one comes with the handshake.
class ws_protocol final : public protocol {
 public:
  explicit ws_protocol(std::size_t size) {
    const std::string message(size, 'w');
    const std::string_view key = "\x01\x02\x03\x04";
    request_ = head(size, 0x80) + std::string(key);
    for (std::size_t i = 0; i < size; ++i)
      request_ += static_cast<char>(message[i] ^ key[i % key.size()]);
    answer_ = head(size, 0) + message;
    first_ =
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
        request_;
  }
  std::string_view request() const override { return request_; }
  std::string_view first_request() const override { return first_; }
  std::size_t answer_size(std::string_view seen) override {
    if (!seen.starts_with('H')) return answer_.size();
    const std::size_t end = seen.find("\r\n\r\n");
    return end == std::string_view::npos ? 0 : end + 4 + answer_.size();
  }
  void check(std::string_view answer) override {
    errno = 0;
    if (!answer.ends_with(answer_)) give_up("an echo differs from its message");
  }

 private:
  /// Of a binary message.
  static std::string head(std::size_t size, int masked) {
    std::string out = "\x82";
    const int bytes = size < 126 ? 0 : size < 65536 ? 2 : 8;
    out += static_cast<char>(masked | (bytes == 0 ? int(size) : bytes == 2 ? 126 : 127));
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i) & 0xff);
    return out;
  }

  std::string request_;
  std::string answer_;
  std::string first_;
};

/// Round-trip times in microseconds.
class trip_times {
 public:
  void reserve(std::int64_t trips) { took_.reserve(static_cast<std::size_t>(trips)); }
  void add(double microseconds) { took_.push_back(static_cast<float>(microseconds)); }
  void clear() { took_.clear(); }
  double percentile(double part) {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(took_.size() - 1));
    std::nth_element(took_.begin(), took_.begin() + static_cast<std::ptrdiff_t>(index),
                     took_.end());
    return double(took_[index]);
  }

 private:
  std::vector<float> took_;
};

class clients {
 public:
  clients(protocol& what, int port) : protocol_(what), port_(port), epoll_(epoll_create1(0)) {
    if (epoll_ < 0) give_up("no epoll");
  }
  clients(const clients&) = delete;
  clients& operator=(const clients&) = delete;
  ~clients() {
    for (const auto& c : all_) ::close(c->descriptor);
    ::close(epoll_);
  }

  /// Connects until there are `count`. Each has had an answer when this returns.
  void open(std::int64_t count) {
    // In portions, so that a listener's backlog does not overflow.
    while (std::int64_t(all_.size()) < count) {
      const std::size_t first = all_.size();
      for (int i = 0; i < 100 && std::int64_t(all_.size()) < count; ++i) add();
      drive(std::int64_t(all_.size() - first), first);
    }
    times_.clear();
  }

  /// `trips` round trips, over all connections at once.
  void run(std::int64_t trips) {
    times_.clear();
    times_.reserve(trips);
    drive(trips, 0);
  }

  trip_times& times() noexcept { return times_; }

 private:
  struct connection {
    int descriptor = -1;
    std::size_t sent = 0;
    std::string answer;
    std::size_t got = 0;
    bool fresh = true;  // it has had no answer
    clock::time_point begun;
  };

  std::string_view request_of(const connection& c) const {
    return c.fresh ? protocol_.first_request() : protocol_.request();
  }

  void add() {
    auto made = std::make_unique<connection>();
    made->descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (made->descriptor < 0 ||
        ::connect(made->descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      give_up("cannot connect");
    const int on = 1;
    ::setsockopt(made->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(made->descriptor, F_SETFL, O_NONBLOCK);
    // Room for more than an answer: what is superfluous is noticed.
    made->answer.resize(protocol_.first_request().size() + 1024);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = made.get();
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, made->descriptor, &event) != 0) give_up("no epoll");
    all_.push_back(std::move(made));
  }

  // Starts at most one trip on each connection from `first` on, and one for each that ends, until
  // `trips` have been started; returns when all have ended.
  void drive(std::int64_t trips, std::size_t first) {
    to_start_ = trips;
    to_end_ = trips;
    for (std::size_t i = first; i < all_.size() && to_start_ > 0; ++i) begin(*all_[i]);
    std::array<epoll_event, 512> events;
    while (to_end_ > 0) {
      const int n = wait(events);
      for (int i = 0; i < n; ++i)
        advance(*static_cast<connection*>(events[std::size_t(i)].data.ptr));
    }
  }

  int wait(std::array<epoll_event, 512>& events) {
    constexpr double spin_nanoseconds = 100'000;
    constexpr int give_up_milliseconds = 30'000;
    const clock::time_point start = clock::now();
    for (;;) {
      const bool sleeps = nanoseconds_since(start) > spin_nanoseconds;
      const int n = ::epoll_wait(epoll_, events.data(), int(events.size()),
                                 sleeps ? give_up_milliseconds : 0);
      if (n > 0) return n;
      if (n < 0 && errno != EINTR) give_up("no events");
      errno = 0;
      if (n == 0 && sleeps) give_up("the server has not answered for 30 s");
    }
  }

  void begin(connection& c) {
    --to_start_;
    c.sent = 0;
    c.got = 0;
    c.begun = clock::now();
    send(c);
  }

  void send(connection& c) {
    const std::string_view whole = request_of(c);
    while (c.sent < whole.size()) {
      const ssize_t n =
          ::send(c.descriptor, whole.data() + c.sent, whole.size() - c.sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) give_up("cannot send");
      c.sent += std::size_t(n);
    }
  }

  // An edge of writing alone also comes here: then nothing is received.
  void advance(connection& c) {
    if (c.sent < request_of(c).size()) send(c);
    for (;;) {
      const std::size_t room = c.answer.size() - c.got;
      const ssize_t n = ::recv(c.descriptor, c.answer.data() + c.got, room, 0);
      if (n < 0 && errno == EAGAIN) return;
      errno = n < 0 ? errno : 0;
      if (n <= 0) give_up("a connection has ended");
      c.got += std::size_t(n);
      if (ended(c)) return;
      if (std::size_t(n) < room) return;
      if (c.got == c.answer.size()) give_up("an answer is too long");
    }
  }

  bool ended(connection& c) {
    const std::string_view seen(c.answer.data(), c.got);
    const std::size_t size = protocol_.answer_size(seen);
    errno = 0;
    if (size == 0 || seen.size() < size) return false;
    if (seen.size() > size) give_up("an answer is followed by more");
    protocol_.check(seen);
    c.fresh = false;
    times_.add(nanoseconds_since(c.begun) / 1000);
    --to_end_;
    if (to_start_ > 0) begin(c);
    return true;
  }

  protocol& protocol_;
  int port_;
  int epoll_;
  std::vector<std::unique_ptr<connection>> all_;
  std::int64_t to_start_ = 0;
  std::int64_t to_end_ = 0;
  trip_times times_;
};

}  // namespace bench
