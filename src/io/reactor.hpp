// SPDX-License-Identifier: MIT
// Readiness of descriptors: one epoll instance per loop, made at its first I/O operation that must
// wait, and from then on the place where the loop sleeps.
//
// Invariants:
// 1. Descriptors of weir are registered once, for edges of both directions, when an operation on
//    them first waits; nothing is changed per operation. What an edge says is kept by the entry.
// 2. An entry is in the list of at most one reactor. A reactor that ends forgets its entries, which
//    may outlive it; an entry that ends removes itself, also from the events that were found and
//    not yet delivered.
// 3. Delivering resumes no frame: waits try, and completed ones enqueue their strands.
// 4. Before it sleeps it looks for events for about as long as a sleep and its wake-up take, while
//    that often finds some. A loop whose events come rarely does so once in `sleeps_per_look`
//    sleeps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include <sys/epoll.h>

#include <weir/detail/core/reply.hpp>

#include "core/fork_watch.hpp"
#include "core/loop.hpp"
#include "core/parker.hpp"

namespace weir::detail {

class reactor;
class foreign_descriptor;

/// A registered descriptor. The owner of the descriptor removes the entry before it closes it.
class reactor_entry {
 public:
  reactor_entry() noexcept = default;
  reactor_entry(const reactor_entry&) = delete;
  reactor_entry& operator=(const reactor_entry&) = delete;

  bool registered() const noexcept { return reactor_ != nullptr; }

 protected:
  ~reactor_entry() { forget(); }
  /// What epoll said. Whatever it calls may be the entry's end: ask `from.delivers_to(*this)`.
  virtual void happened(reactor& from, std::uint32_t events) noexcept = 0;
  /// No further events are delivered, and the descriptor is not registered any more. Before the
  /// descriptor is closed: the kernel keeps a registration as long as a duplicate exists, in this
  /// process or in a child that was forked and has not called exec yet, and would report events of
  /// an entry that is gone.
  void unregister(int descriptor) noexcept;

 private:
  friend class reactor;
  /// No further events are delivered.
  void forget() noexcept;

  reactor* reactor_ = nullptr;
  reactor_entry* previous_ = nullptr;
  reactor_entry* next_ = nullptr;
};

class reactor final : public parker {
 public:
  /// That of the running loop; made if there is none. Throws weir::error.
  static reactor& here();

  explicit reactor(loop& of);
  ~reactor() override;

  void sleep(std::int64_t nanoseconds) noexcept override;
  bool deliver() noexcept override;
  /// The epoll instance, which another one may watch: it is readable while there is something to
  /// deliver, or the loop was rung.
  int descriptor() const noexcept { return epoll_; }

  /// An operation begins to wait: registers the entry if it is not, and keeps the loop from being
  /// called deadlocked. An error of the system, or 0. `end_wait` follows in any case.
  static int begin_wait(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept;
  static void end_wait() noexcept;
  /// Whether the entry whose events are being delivered is still registered.
  bool delivers_to(const reactor_entry& entry) const noexcept { return delivering_ == &entry; }
  /// An error of the system, or 0.
  int add(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept;
  int change(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept;

  /// The entry of a descriptor of another library, made if there is none. Throws std::bad_alloc.
  foreign_descriptor& foreign(int descriptor);
  /// Nobody waits for it any more.
  void drop_foreign(int descriptor) noexcept;

  /// How often reactors of this process have called the kernel: for tests that count.
  static std::uint64_t system_calls() noexcept;

 private:
  friend class reactor_entry;
  static constexpr std::size_t batch = 256;

  static constexpr int looks_granted = 16;
  static constexpr int sleeps_per_look = 64;

  /// False: nothing was found in time, and no signal has come.
  bool collect(const timespec* limit) noexcept;
  bool look_before_sleep() noexcept;

  loop& loop_;
  process_mark process_;
  answer_due readiness_;  // expected while an operation waits
  std::uint64_t waits_ = 0;
  int epoll_;
  int found_ = 0;                   // events that wait for delivery
  int at_ = 0;                      // the next of them
  bool collected_ = false;          // since the last delivery
  int looks_left_ = looks_granted;  // that may fail in a row
  int sleeps_without_look_ = 0;
  reactor_entry* delivering_ = nullptr;
  reactor_entry* entries_ = nullptr;
  std::array<epoll_event, batch> events_;
  std::unordered_map<int, std::unique_ptr<foreign_descriptor>> foreign_;
};

}  // namespace weir::detail
