// SPDX-License-Identifier: MIT
// The network of a simulated world: who listens, which connections there are, what is under way.
// The sockets above it are those of src/io.
//
// Invariants:
// 1. A connection is a `network_link` with two ends. What one end sends to the other is a lane: a
//    queue of pieces with their times. Only the first one is scheduled, so nothing is overtaken: a
//    piece whose time comes earlier waits for those before it.
// 2. A piece arrives when its time has come, unless its hosts are separated: then its lane is held
//    until `heal`. Nothing else is due and not arrived while a loop runs.
// 3. Arrival changes the end, not the socket above it; a socket that waits is told by a message to
//    its loop, as a kernel makes a descriptor ready. So a loop that is paused receives, but does
//    not see it, and when a socket is told is a choice of the simulation.
// 4. At most `window` bytes are between a write and the read that takes them. Room comes back as a
//    piece of its own.
// 5. An end belongs to the loop that made it, and is closed if that loop crashes. If it ends, to
//    the next loop that uses it. A socket may outlive the world: it keeps its link, and is closed.
// 6. Bytes that arrived before a reset can still be read.
// 7. A datagram is alone: it is lost, doubled and delayed on its own, and may overtake others. What
//    cannot be delivered when its time has come is gone: nobody is bound there, the hosts are
//    separated, or its receiver is full (`window`, `max_letters`).
// 8. Nothing here depends on addresses of objects or on hashes: equal choices give equal runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/core/message.hpp>
#include <weir/duration.hpp>
#include <weir/sim/network.hpp>

#include "core/door.hpp"

namespace weir::detail {

class network_link;
class network_state;

/// What the network needs from its simulation.
class network_host {
 public:
  network_host(const network_host&) = delete;
  network_host& operator=(const network_host&) = delete;

  virtual time_point now() = 0;
  /// True with this probability; called only for rates above 0.
  virtual bool chance(double rate) = 0;
  /// A random number from 0 to n - 1.
  virtual std::uint64_t below(std::uint64_t n) = 0;
  /// Which of several things happens first.
  virtual std::size_t choose(std::size_t options) = 0;

 protected:
  network_host() = default;
  ~network_host() = default;
};

/// Where a socket is: a loop and a port, or a path (then `host` is still its loop).
struct network_address {
  std::string host;
  int port = 0;
  std::string path;
};

enum class network_side : std::uint8_t { read, write, hangup };

/// The socket above an end of a connection, or above a port.
class network_user {
 public:
  network_user(const network_user&) = delete;
  network_user& operator=(const network_user&) = delete;
  /// Whether an operation of this side waits.
  virtual bool waits(network_side side) const noexcept = 0;
  /// On its loop: something may be possible now.
  virtual void told() noexcept = 0;
  /// Its loop has crashed, or the world has ended: what it stands on is closed.
  virtual void orphaned() noexcept = 0;

 protected:
  network_user() = default;
  ~network_user() = default;
};

/// What an end and a port have in common: the socket above, and the way to tell it.
class network_place : private message {
 public:
  /// The socket above; none in between. On its loop.
  void attach(network_user& user) noexcept { user_ = &user; }
  void detach() noexcept { user_ = nullptr; }

 protected:
  network_place() = default;
  ~network_place() = default;
  void settle(const door_ref& door) noexcept { door_ = door; }
  /// The running loop uses it.
  void come_home() noexcept;
  const door_ref& door() const noexcept { return door_; }
  std::uint32_t serial() const noexcept { return door_ == nullptr ? 0 : door_->serial(); }
  /// Tells the socket if it waits on this side. `self` keeps this alive until then.
  void tell(network_side side, const std::shared_ptr<void>& self) noexcept;
  void orphan() noexcept;

 private:
  void deliver(loop&) noexcept final;
  void refuse() noexcept final { told_ = nullptr; }

  network_user* user_ = nullptr;
  door_ref door_;
  std::shared_ptr<void> told_;  // not null: the message is on its way
};

/// What one try of a socket gave: bytes, or an error of the system (EAGAIN: it would block).
struct network_try {
  std::size_t bytes = 0;
  int error = 0;
};

/// One end of a connection.
class network_end final : public network_place {
 public:
  explicit network_end(network_link& link) noexcept : link_(link) {}

  const network_address& address() const noexcept { return address_; }
  const network_address& peer_address() const noexcept { return peer().address_; }

  /// Whether it is known how the connect has ended; `error()` then says how.
  bool settled() const noexcept { return open_ || error_ != 0; }
  int error() const noexcept { return error_; }
  bool hung_up() const noexcept { return got_end_ || error_ != 0; }
  network_try receive(std::span<std::byte> into);
  network_try send(std::span<const std::byte> bytes);
  int shutdown_write();
  /// Not in a dead world.
  void close();
  /// A wait begins: tells the socket if there is nothing to wait for.
  void watch(network_side side) noexcept;

 private:
  friend class network_state;

  enum class kind : std::uint8_t {
    open,     // the client asks for a connection
    opened,   // the server has it
    refused,  // nobody listens
    bytes,
    taken,  // the other end has read so many bytes
    end,    // no more bytes will come
    reset,
  };
  struct piece {
    kind what;
    std::string bytes{};
    std::size_t count = 0;
    time_point at{};
  };

  network_end& peer() const noexcept;
  network_state* net() const noexcept;
  void tell(network_side side) noexcept;
  void tell_all() noexcept;
  void fail(int error) noexcept;
  std::size_t unread() const noexcept { return received_.size() - begin_; }

  network_link& link_;
  network_address address_;
  std::deque<piece> lane_;  // to the other end
  bool scheduled_ = false;
  bool open_ = false;
  bool got_end_ = false;
  bool sent_end_ = false;  // or a reset
  bool closed_ = true;     // no socket uses it, or ever will
  int error_ = 0;
  std::string received_;
  std::size_t begin_ = 0;      // bytes before it have been read
  std::size_t under_way_ = 0;  // sent, and not known to be read
};

/// A connection, from the moment it is asked for.
class network_link : public std::enable_shared_from_this<network_link> {
 public:
  network_link(network_state& net, std::uint64_t id) noexcept
      : client(*this), server(*this), net_(&net), id_(id) {}

  network_end client;
  network_end server;

 private:
  friend class network_state;
  friend class network_end;
  network_state* net_;  // null: the world is gone
  std::uint64_t id_;
};

/// The accepting side. Connections beyond the backlog are not refused: they wait.
class network_port final : public network_place, public std::enable_shared_from_this<network_port> {
 public:
  network_port(network_state& net, network_address address, std::size_t backlog)
      : net_(&net), address_(std::move(address)), backlog_(backlog) {}

  const network_address& address() const noexcept { return address_; }
  /// The next connection; null: nobody waits.
  std::shared_ptr<network_link> accept();
  bool has_connection() const noexcept { return !queue_.empty(); }
  /// Not in a dead world.
  void close();
  void watch() noexcept;

 private:
  friend class network_state;
  network_state* net_;  // null: it is closed
  network_address address_;
  std::size_t backlog_;
  std::deque<std::shared_ptr<network_link>> queue_;
  std::deque<std::shared_ptr<network_link>> beyond_;  // did not find a place in the queue
};

/// What is bound to a port for datagrams; these ports are not those of listeners.
class network_mailbox final : public network_place,
                              public std::enable_shared_from_this<network_mailbox> {
 public:
  struct letter {
    network_address from;
    std::string bytes;
  };

  network_mailbox(network_state& net, network_address address)
      : net_(&net), address_(std::move(address)) {}

  const network_address& address() const noexcept { return address_; }
  /// The next datagram; empty: none has arrived.
  std::optional<letter> take() noexcept;
  /// Whether there is a loop of this name, or was.
  bool has_host(std::string_view name) const noexcept;
  /// Without effect in a world that is gone.
  void send(const network_address& to, std::span<const std::byte> bytes);
  /// Not in a dead world.
  void close();
  void watch() noexcept;

 private:
  friend class network_state;
  network_state* net_;  // null: it is closed
  network_address address_;
  std::deque<letter> arrived_;
  std::size_t unread_ = 0;  // bytes in `arrived_`
};

class network_state {
 public:
  static constexpr std::size_t window = 64 * 1024;
  static constexpr std::size_t max_letters = 1024;  // unread datagrams, which may be empty
  static constexpr duration resend = std::chrono::milliseconds(200);

  explicit network_state(network_host& host) noexcept : host_(host) {}
  network_state(const network_state&) = delete;
  network_state& operator=(const network_state&) = delete;
  ~network_state();

  // For the world.

  void set(const sim::network_faults& faults) noexcept { faults_ = faults; }
  void add_host(std::string_view name);
  bool has_host(std::string_view name) const noexcept { return hosts_.contains(name); }
  void partition(std::string_view a, std::string_view b);
  void heal();
  void reset(std::string_view a, std::string_view b);

  // For the simulation.

  /// Whether something has arrived.
  bool deliver_due();
  /// When something arrives next; time_point::max(): never.
  time_point next() const noexcept;
  void loop_crashed(std::uint32_t serial);

  // For sockets, on their loop.

  /// Port 0 picks one. Null: the address is taken.
  std::shared_ptr<network_port> listen(loop& here, network_address at, std::size_t backlog);
  /// Begins to connect; see network_end::settled.
  std::shared_ptr<network_link> connect(loop& here, network_address to);
  /// Port 0 picks one. Null: it is taken.
  std::shared_ptr<network_mailbox> bind(loop& here, int port);
  /// Whether a connect to a path finds a file there, although nobody listens.
  bool stale(const std::string& path) const { return stale_paths_.contains(path); }

 private:
  friend class network_end;
  friend class network_port;
  friend class network_mailbox;
  using kind = network_end::kind;
  using piece = network_end::piece;
  using place = std::pair<std::string, int>;  // host and port; or path and -1
  using host_pair = std::pair<std::string, std::string>;

  static place place_of(const network_address& a);
  static host_pair pair_of(std::string_view a, std::string_view b);
  bool separated(const network_end& from) const;
  bool separated(const std::string& a, const std::string& b) const;
  time_point delayed();
  time_point arrival(kind what);
  int free_port(const std::string& host);
  void put(network_end& from, piece p);
  void schedule(network_end& from);
  void drop_lane(network_end& from) noexcept;
  void arrive(network_end& from, piece p);
  void open_arrived(network_end& to);
  void enqueue(network_port& port, network_link& link);
  void bytes_arrived(network_end& to, const std::string& bytes);
  void close(network_end& end, bool crashed);
  void close(network_port& port, bool left_behind);
  void reset(network_end& end);
  void forget_if_done(network_link& link) noexcept;

  struct datagram {
    network_address from;
    place to;
    std::string bytes;
  };
  void send(const network_mailbox& from, const network_address& to,
            std::span<const std::byte> bytes);
  void send_copy(datagram d);
  void arrive(datagram d);
  bool deliver_piece();
  bool deliver_datagram();

  network_host& host_;
  sim::network_faults faults_;
  std::set<std::string, std::less<>> hosts_{"main"};
  std::set<host_pair> partitions_;
  std::map<std::uint64_t, std::shared_ptr<network_link>> links_;
  std::map<place, std::shared_ptr<network_port>> ports_;
  std::set<std::string> stale_paths_;  // of listeners that ended without removing their file
  std::multimap<time_point, network_end*> schedule_;
  std::map<place, std::shared_ptr<network_mailbox>> mailboxes_;
  std::multimap<time_point, datagram> datagrams_;
  std::uint64_t last_id_ = 0;
  int last_port_ = 0;
};

/// The network of a simulated loop. REQUIRES: its environment is simulated.
network_state& network_of(loop& here) noexcept;

}  // namespace weir::detail
