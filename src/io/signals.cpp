// SPDX-License-Identifier: MIT
// io::signals. A subscription is a node in a list that the signal handler walks. The handler needs
// no descriptor: it notes the signal in the node and, if a fiber waits, posts the node to its loop.
//
// Invariants:
// 1. The list, the counts and the dispositions change under `no_forks`, which is a lock; so a
// forked
//    child finds them whole. The handler reads the list and uses atomics only.
// 2. A node is in the list while its stream exists. Its owner removes it and then waits until no
//    handler runs, so a handler never sees a node that is gone.
// 3. A node's message is in flight at most once: a handler posts it only if it changes `wanted`
// into
//    `in_flight` in one step. `orphaned` and the end of `in_flight` are read-modify-writes of the
//    same word; the later of the two frees the node. A handler does not: the node is in the list.
// 4. `noted_` has a bit per signal in `ring_`, set before and cleared after it is there; so the
// ring
//    cannot overflow, and repeats are merged.
//
// Why no signal is missed: a handler writes the ring and then looks for `wanted`; a fiber sets
// `wanted` and then looks at the ring. All of this is sequentially consistent, so one of the two
// sees the other. Nothing is shared with a forked child but memory, which is copied; a handler that
// ran on another thread at the time of the fork does not exist in the child, so its count is reset.
#include <weir/io/signals.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/error.hpp>

#include "core/fork_watch.hpp"
#include "core/loop.hpp"
#include "core/signals.hpp"

namespace weir::detail {

namespace {

constexpr int last_signal = 64;
constexpr std::uint64_t bit_of(int number) noexcept { return std::uint64_t{1} << (number - 1); }

class signal_wait;

/// One stream's signals.
class signal_node final : public message {
 public:
  explicit signal_node(std::uint64_t watched) noexcept : mask(watched) {}

  // ---- Signal handlers.

  void note(int number) noexcept;

  // ---- The loop that pulls.

  /// The signal that came first; 0: none.
  int take() noexcept;
  void wait_for(signal_wait& w) noexcept;
  void stop_waiting() noexcept;
  void forget(const signal_wait& w) noexcept {
    if (waiting_ == &w) stop_waiting();
  }
  void require_home() {
    if (!home_.is_here())
      home_.settle({"signals", {}}, "make a stream on each loop; one is not pulled", true);
  }
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override { (void)landed(); }
  /// The stream is gone, and no handler sees the node.
  void leave() noexcept {
    if ((state_.fetch_or(orphaned) & in_flight) == 0) delete this;
  }

  const std::uint64_t mask;
  std::atomic<signal_node*> next_in_list{nullptr};

 private:
  ~signal_node() = default;
  enum : unsigned { wanted = 1, in_flight = 2, orphaned = 4 };
  /// The message has arrived or was refused. False: there was no stream any more, and it is freed.
  bool landed() noexcept;

  std::atomic<std::uint64_t> noted_{0};
  std::atomic<std::uint32_t> tail_{0};
  std::array<std::atomic<int>, last_signal> ring_{};
  std::atomic<unsigned> state_{0};
  door_ref door_;  // written while neither wanted nor in flight
  // Used on the loop only.
  std::uint32_t head_ = 0;
  signal_wait* waiting_ = nullptr;
  answer_due due_;
  home home_;
};

/// Waits for the next signal of a node.
class signal_wait : public simple_wait<signal_wait> {
 public:
  struct args {
    signal_node* from;
  };
  using result = int;

  explicit signal_wait(args&& a) noexcept : from_(a.from) {}
  bool try_now() noexcept {
    number_ = from_->take();
    return number_ != 0;
  }
  void arm() noexcept { from_->wait_for(*this); }
  cancel_result withdraw() noexcept override {
    from_->stop_waiting();
    return cancel_result::done;
  }
  void describe(dump_line& line) const override { line.add("signals"); }
  int take() const noexcept { return number_; }

 protected:
  ~signal_wait() { from_->forget(*this); }  // a crash withdraws nothing

 private:
  friend class signal_node;
  /// Whether there is a signal now; then it has ended.
  bool look() noexcept {
    if (!try_now()) return false;
    complete();
    return true;
  }

  signal_node* from_;
  int number_ = 0;
};

// ------------------------------------------------------------------ the list

std::atomic<signal_node*> first_node{nullptr};
std::atomic<int> handlers_running{0};
static_assert(std::atomic<signal_node*>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

void wait_for_handlers() noexcept {
  while (handlers_running.load() > 0) std::this_thread::yield();
}

void on_watched_signal(int number) {
  const int kept = errno;
  handlers_running.fetch_add(1);
  for (signal_node* n = first_node.load(); n != nullptr; n = n->next_in_list.load())
    if ((n->mask & bit_of(number)) != 0) n->note(number);
  handlers_running.fetch_sub(1);
  errno = kept;
}

class signal_list final : public fork_watch {
 public:
  static signal_list& all() {
    static signal_list* const instance = make();  // never destroyed: threads may outlive main
    return *instance;
  }
  void in_child() noexcept override { handlers_running.store(0); }

  /// Throws errc::busy or errc::invalid_argument, and has then changed nothing.
  void add(signal_node& node) {
    const no_forks alone;
    node.next_in_list.store(first_node.load());
    first_node.store(&node);
    std::uint64_t done = 0;
    try {
      for (int n = 1; n <= last_signal; ++n) {
        if ((node.mask & bit_of(n)) == 0) continue;
        if (places_[static_cast<std::size_t>(n)].count++ == 0) install(n);
        done |= bit_of(n);
      }
    } catch (...) {
      take_out(node, done);
      throw;
    }
  }
  void remove(signal_node& node) noexcept {
    const no_forks alone;
    take_out(node, node.mask);
  }

 private:
  struct place {
    int count = 0;
    struct sigaction earlier{};
  };

  static signal_list* make() {
    const no_forks guard;
    auto made = std::make_unique<signal_list>();
    made->watch(guard);
    return made.release();
  }
  void install(int number) {
    place& p = places_[static_cast<std::size_t>(number)];
    try {
      claim_signal(number);
      struct sigaction mine{};
      mine.sa_handler = on_watched_signal;
      mine.sa_flags = SA_RESTART;
      sigfillset(&mine.sa_mask);
      if (sigaction(number, &mine, &p.earlier) == 0) return;
      unclaim_signal(number);
      raise(
          errc::invalid_argument,
          "io::signals: the system does not let a program handle signal " + std::to_string(number));
    } catch (...) {
      --p.count;
      throw;
    }
  }
  void restore(int number) noexcept {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == on_watched_signal)
      sigaction(number, &places_[static_cast<std::size_t>(number)].earlier, nullptr);
    unclaim_signal(number);
  }
  void take_out(signal_node& node, std::uint64_t installed) noexcept {
    for (int n = 1; n <= last_signal; ++n)
      if ((installed & bit_of(n)) != 0 && --places_[static_cast<std::size_t>(n)].count == 0)
        restore(n);
    std::atomic<signal_node*>* at = &first_node;
    while (at->load() != &node) at = &at->load()->next_in_list;
    at->store(node.next_in_list.load());
    // A handler on another thread may just have found the node.
    wait_for_handlers();
  }

  std::array<place, last_signal + 1> places_{};
};

// ------------------------------------------------------------------ the node

void signal_node::note(int number) noexcept {
  if ((noted_.fetch_or(bit_of(number)) & bit_of(number)) != 0) return;
  ring_[tail_.fetch_add(1) % last_signal].store(number);
  unsigned seen = state_.load();
  while ((seen & wanted) != 0)
    if (state_.compare_exchange_weak(seen, (seen & ~unsigned{wanted}) | in_flight)) {
      door_->post(*this);
      return;
    }
}

int signal_node::take() noexcept {
  const int number = ring_[head_ % last_signal].exchange(0);
  if (number == 0) return 0;
  ++head_;
  noted_.fetch_and(~bit_of(number));
  return number;
}

void signal_node::wait_for(signal_wait& w) noexcept {
  loop& here = *loop::here();
  waiting_ = &w;
  due_.expect(here);
  if ((state_.load() & in_flight) != 0) return;  // its arrival looks again
  if (door_ != here.shared_door()) {
    wait_for_handlers();  // one that posted to the loop before may still use its door
    door_ = here.shared_door();
  }
  state_.fetch_or(wanted);
  if (w.look()) stop_waiting();
}

void signal_node::stop_waiting() noexcept {
  waiting_ = nullptr;
  due_.settle();
  state_.fetch_and(~unsigned{wanted});
}

bool signal_node::landed() noexcept {
  const unsigned before = state_.fetch_and(~unsigned{in_flight});
  if ((before & orphaned) != 0) delete this;
  return (before & orphaned) == 0;
}

void signal_node::deliver(loop&) noexcept {
  if (!landed() || waiting_ == nullptr) return;
  signal_wait& w = *waiting_;
  if (w.look()) return stop_waiting();
  wait_for(w);  // an earlier pull took what it announced
}

/// Owns a node, from its entry into the list.
class signal_subscription {
 public:
  explicit signal_subscription(std::uint64_t mask) : node_(new signal_node(mask)) {
    try {
      signal_list::all().add(*node_);
    } catch (...) {
      node_->leave();
      throw;
    }
  }
  signal_subscription(signal_subscription&& other) noexcept
      : node_(std::exchange(other.node_, nullptr)) {}
  signal_subscription& operator=(signal_subscription&&) = delete;
  ~signal_subscription() {
    if (node_ == nullptr) return;
    signal_list::all().remove(*node_);
    node_->leave();
  }
  auto next() const {
    node_->require_home();
    return pending<signal_wait>({node_});
  }

 private:
  signal_node* node_;
};

stream<int> signals_of(signal_subscription from) {
  for (;;) co_yield co_await from.next();
}

void require_watchable(int number) {
  const std::string which = "io::signals: " + std::to_string(number);
  if (number < 1 || number > last_signal)
    raise(errc::invalid_argument, which + " is not a signal; give SIGHUP, SIGUSR1 and so on");
  if (number == SIGKILL || number == SIGSTOP)
    raise(errc::invalid_argument, which + " cannot be handled by a program");
  if (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL)
    raise(errc::invalid_argument,
          which + " is a fault of the program, which would repeat without end");
}

}  // namespace

stream<int> watch_signals(std::span<const int> numbers) {
  require_no_run("io::signals");
  std::uint64_t mask = 0;
  for (const int number : numbers) {
    require_watchable(number);
    mask |= bit_of(number);
  }
  return signals_of(signal_subscription(mask));
}

}  // namespace weir::detail
