// SPDX-License-Identifier: MIT
// What operations on sockets wait for. An `io_source` is something that becomes ready: one end of a
// byte stream, a listening socket, a foreign descriptor; on a real descriptor, in a simulation, or
// on top of another source. An `io_wait` is an operation on it: it tries, and if that would block,
// it is the source's waiting operation of its side until a try succeeds.
//
// Invariants:
// 1. A source belongs to one loop; everything below happens there.
// 2. At most one wait per side. A second one fails with errc::busy before it has tried, so nothing
//    overtakes the first.
// 3. Only a try moves bytes, and only while its wait is neither ended nor withdrawn. So the kernel
//    owns no buffer, a withdrawn wait has taken nothing that it does not give back, and a buffer is
//    not touched after its operation.
// 4. `ready(side)` may come for no reason: the wait tries again and goes on waiting.
// 5. Closing ends the waiting operations with errc::closed, and later ones fail with it.
// 6. A source that is carried by another one (`carry`) has no waits: its readiness goes to the
//    carrier, which watches through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>

namespace weir::detail {

class io_wait;

/// What one try gave: bytes, or the system's error; EAGAIN: it would block. Negative errors are the
/// source's own, which its `explain` knows.
struct io_try {
  std::size_t bytes = 0;
  int error = 0;
};

/// An error of a try, for people and programs.
struct io_problem {
  std::error_code code;
  std::string text;
};

/// `hangup`: the other end is gone or sends no more, although no fiber reads.
enum class io_side : std::uint8_t { read, write, hangup };

class io_source {
 public:
  io_source() noexcept = default;
  io_source(const io_source&) = delete;
  io_source& operator=(const io_source&) = delete;

  bool closed() const noexcept { return closed_; }
  /// How errors and dumps call it: "socket 127.0.0.1:80".
  virtual std::string text() const = 0;
  /// Whether an operation of this side waits.
  bool has_wait(io_side side) const noexcept { return waiting(side) != nullptr; }
  /// The waiting operation of this side, if there is one, tries again.
  void retry(io_side side) noexcept { ready(side); }
  /// Ends the wait of one side, if there is one, with errc::closed; the source stays open. The wait
  /// gives nothing back.
  void end_wait(io_side side, const char* why) noexcept;
  /// What an error of a try means.
  virtual io_problem explain(int error) const;
  /// Throws errc::wrong_loop, or errc::not_journaled in a durable run.
  void require_home(const char* kind) {
    if (!home_.is_here()) [[unlikely]]
      settle_home(kind);
  }

  // Below: for a source that is carried by another one.
  /// From now on `above`, which outlives this, hears what becomes ready.
  void carry(io_source& above) noexcept { above_ = &above; }
  int watch_for_carrier(io_side side) noexcept { return watch(side); }
  void unwatch_for_carrier(io_side side) noexcept { unwatch(side); }
  /// Says soon, and not inside this call, that everything may be ready. REQUIRES: it is watched.
  virtual void stir() noexcept {}

 protected:
  virtual ~io_source() = default;

  /// A wait begins to wait: from now on call `ready(side)` when a try may succeed. An error of the
  /// system, or 0.
  virtual int watch(io_side side) noexcept = 0;
  /// It has ended, or was withdrawn. Called once for each `watch`, also for one that failed.
  virtual void unwatch(io_side side) noexcept = 0;
  /// Null: none waits.
  io_wait* waiting(io_side side) const noexcept { return waits_[static_cast<std::size_t>(side)]; }
  /// A try on this side may succeed now.
  void ready(io_side side) noexcept;
  /// The same of the source that this one carries.
  virtual void ready_below(io_side) noexcept {}
  /// Ends all waits with errc::closed. Returns false if it was closed before.
  bool close_waits() noexcept;
  /// Aborts if an operation waits: the object is being destroyed.
  void require_idle() const noexcept;

 private:
  friend class io_wait;
  void settle_home(const char* kind);
  static void finish(io_wait& w) noexcept;

  std::array<io_wait*, 3> waits_{};
  io_source* above_ = nullptr;
  home home_;
  bool closed_ = false;
};

/// An operation on a source, without its type.
class io_wait : public wait {
 public:
  static constexpr bool home_bound = true;

  bool failed() const noexcept { return failure_ != nullptr; }
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const final;

 protected:
  io_wait(io_source* source, io_side side, const char* what) noexcept
      : source_(source), what_(what), side_(side) {}
  ~io_wait();

  /// Whether it may try. False: it has ended with errc::closed or errc::busy.
  bool may_try() noexcept {
    if (source_ != nullptr && !source_->closed_ && (waiting_ || source_->waiting(side_) == nullptr))
        [[likely]]
      return true;
    refuse();
    return false;
  }
  /// Waits until a try may succeed.
  void arm() noexcept;
  /// It ends with this error of the system, or of weir. Always true: it has ended.
  bool fail(int error) noexcept;
  bool fail(errc code, const char* text) noexcept;
  bool fail(std::exception_ptr error) noexcept;
  void rethrow() {
    if (failure_ != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  io_side side() const noexcept { return side_; }
  /// Whether it is its side's waiting operation: nothing else has used that side since it began.
  bool waits() const noexcept { return waiting_; }

  io_source* source_;

 private:
  friend class io_source;
  void leave() noexcept;
  void refuse() noexcept;

  std::exception_ptr failure_;
  const char* what_;
  io_side side_;
  bool waiting_ = false;
};

/// An operation on a source. `Derived` provides `bool try_now() noexcept`, which asks `may_try`
/// first: true if it has ended, with a result or with `fail`.
template <class Derived>
class io_operation : public io_wait {
 public:
  bool poll() override { return static_cast<Derived&>(*this).try_now(); }
  void link() override { arm(); }

 protected:
  using io_wait::io_wait;
  ~io_operation() = default;
};

}  // namespace weir::detail
