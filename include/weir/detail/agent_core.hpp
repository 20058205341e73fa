// SPDX-License-Identifier: MIT
// What an agent is without its type: a name, a mailbox, and one life after the other.
//
// Who touches what:
// 1. The counts, the gate and the reservations of a bounded mailbox are atomic: any thread.
// 2. The mailbox, those who wait for room in it and the lives belong to the agent's loop. Other
//    threads post messages there; each keeps the core alive while it travels.
// 3. An agent that was made outside of any loop has no home until its supervisor runs. Until then
//    its mailbox is behind a lock.
//
// What always holds:
// 4. A message is in one place: with its sender, on its way, in the mailbox (or in the line before
//    it), or being handled. Whoever takes it out of the last two answers it, so each call has
//    exactly one answer.
// 5. A life ends after its handler, the scope of the incarnation and its defers; the next one is
//    begun by the owner after that. Stop requests, timers and answers belong to one life.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <weir/detail/counted_ref.hpp>
#include <weir/detail/fiber.hpp>
#include <weir/detail/message.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/future.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/scope.hpp>

namespace weir {

/// What became of a message that was cast.
enum class sent : std::uint8_t {
  enqueued,  ///< it is in the mailbox, or on its way there
  full,      ///< there was no room, and nothing was enqueued
  dropped,   ///< there was no room, and it was dropped
  stopped,   ///< the agent has ended, or is about to; it was dropped
};

/// How an agent ended for good.
enum class ending : std::uint8_t {
  normal,     ///< it was asked to stop, or had finished
  cancelled,  ///< it was cut off at a limit, or by a cancellation
  crashed,    ///< by its own error, and was not restarted
  escalated,  ///< its supervisor gave up
};

enum class agent_state : std::uint8_t { starting, idle, running, stopping, restarting, ended };

/// What an error of a handler does in a call; in a cast it always crashes the agent.
enum class on_error : std::uint8_t {
  reply,  ///< the caller gets it, and the agent lives on
  crash,  ///< the caller gets it, and the agent crashes
};

/// What becomes of the casts in a mailbox when its agent is restarted.
enum class mailbox : std::uint8_t { drop, keep };

struct agent_info {
  std::string name;
  agent_state state = agent_state::starting;
  std::uint64_t generation = 0;  ///< 1 is the first life
  std::uint64_t restarts = 0;
  std::uint64_t queued = 0;
  std::uint64_t handled = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;  ///< calls that had expired or were cancelled before their turn
};

/// Why a call was not answered by its handler, or could not be sent.
class agent_error : public error {
 public:
  agent_error(errc code, const std::string& what, std::vector<std::string> chain = {});
  /// errc::call_cycle: the agents whose handlers wait for this call, outermost first.
  const std::vector<std::string>& chain() const noexcept { return *chain_; }

 private:
  std::shared_ptr<const std::vector<std::string>> chain_;
};

namespace detail {

class agent_core;
class agent_life;
class agent_timer;
class call_wait_base;
class door;
class end_wait_base;
class end_watch;
class room_ticket;
class takedown;
class mail_send_wait;
class stop_ticket;
struct agent_extras;

using agent_handle = counted_ref<agent_core>;

/// One handler that waits for a call to be answered, and those that wait for it.
class chain_link final : public trail {
 public:
  chain_link(agent_core& handler, trail_ref around);
  ~chain_link() override;
  const agent_handle agent;
  trail_ref outer;  // a chain_link, or null; never changes
  std::atomic<bool> running{true};
};

/// One message: a handler with its arguments.
struct envelope : message {
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  explicit envelope(bool asks = false) noexcept : is_call(asks) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;
  /// Starts the handler of `object` in the running strand. False: it has ended, and the result is
  /// there.
  virtual bool start(void* object, strand& s) = 0;
  virtual outcome_base& result() noexcept = 0;
  virtual void dispose() noexcept = 0;

  union {
    agent_core* to = nullptr;  // counted, while it travels
    envelope* before;          // while it is in line
  };
  bool is_call;
  bool to_line = false;           // on its way there:
  bool in_line = false;           // waits for room in the mailbox
  room_ticket* ticket = nullptr;  // who waits for it to be accepted

 protected:
  ~envelope() = default;
};

/// A message whose sender waits for the result. It is shared by the caller's wait and by whoever
/// has the message; `phase` decides who disposes of it.
struct call_envelope : envelope {
  enum class step : std::uint8_t {
    waiting,
    answered,
    skipped,    // its deadline has passed, which the caller will notice by itself
    abandoned,  // the caller was cancelled: it is skipped, or its answer is late
    orphaned,   // the caller's loop has crashed: it is handled, and its answer goes nowhere
  };
  call_envelope() noexcept : envelope(true) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;

  std::atomic<step> phase{step::waiting};
  bool returning = false;            // it is on its way back
  call_wait_base* caller = nullptr;  // the caller's loop only
  std::shared_ptr<door> home;        // the caller's
  time_point deadline = time_point::max();
  trail_ref chain;

 protected:
  ~call_envelope() = default;
};

/// Told that a life has begun, its constructor having returned. On the owner's loop.
struct birth_listener {
  virtual void born() noexcept = 0;

 protected:
  ~birth_listener() = default;
};

/// The options of an agent with its name already copied.
struct agent_setup {
  kept_name name;
  std::int64_t capacity = unbounded;
  weir::overflow overflow = weir::overflow::reject;
  loop_ref on{};
  weir::on_error on_error = weir::on_error::reply;
  mailbox on_restart = mailbox::drop;
  std::source_location site;
  bool supervised = false;  // the owner decides what comes after a life
  bool revives = false;     // a life that has ended is always followed by another one
  bool keeps = false;       // the arguments are kept for further lives
  std::uint32_t lives = 1;  // at once: those of an agent_pool
};
/// Throws errc::invalid_argument.
void check_mailbox(const char* what, std::string_view name, std::int64_t capacity, overflow how);

class agent_core : public polite_service {
 public:
  explicit agent_core(agent_setup&& setup);
  agent_core(const agent_core&) = delete;
  agent_core& operator=(const agent_core&) = delete;
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  void retain() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

  // ---- Any thread.

  std::string_view name() const noexcept { return name_; }
  /// The address of something that is unique to the type of the agent.
  virtual const void* type() const noexcept = 0;
  sent cast(envelope* message) noexcept;
  agent_info info() const;
  future<void> stop();
  /// False while a message may still reach it.
  bool ended_for_good() const noexcept {
    return (marks_.load(std::memory_order_acquire) & is_over) != 0;
  }
  weir::ending how_it_ended() const noexcept { return ending_.load(std::memory_order_relaxed); }
  bool is_here() const noexcept {
    return home_serial_.load(std::memory_order_relaxed) == current_loop_serial();
  }
  loop_ref where() const noexcept;
  void count_dropped(std::uint64_t n) noexcept { dropped_.fetch_add(n, std::memory_order_relaxed); }

  // ---- The owner (a scope or a supervisor), on its own loop.

  /// Gives an agent that has none its home: the running loop.
  void settle_home();
  /// Begins the next life as a child of `owner`; on another loop a child that stands for it.
  /// `told`, if given, hears when the constructor has returned. The fiber is counted for the
  /// caller.
  fiber* begin_life(scope& owner, scope::launch how, birth_listener* told,
                    std::source_location site = {});
  /// How often begin_life is called for all its lives at once.
  std::uint32_t fibers_to_begin() const noexcept;
  /// Asks the life to finish its handler and then to end, whatever is in the mailbox.
  /// `restarts`: another life will follow, so that messages that come meanwhile are kept for it.
  void cut_short(bool restarts) noexcept;
  /// The life has ended and another one will follow: queued calls fail with errc::agent_restarted,
  /// and casts are dropped, unless .on_restart keeps them or the life ended because of stop().
  void expect_life(bool was_stopped) noexcept;
  /// The life has ended and no other follows until somebody revives it: everything queued is
  /// dropped, and calls fail with `code`, as do later ones.
  void shut(errc code) noexcept;
  /// No further life, ever: as `shut`, and tells everybody who asked how it ended.
  void finish(weir::ending how) noexcept;
  /// scope_ended: as stop(), for the scope that owns it.
  void ask_to_end() noexcept override;

  // ---- Senders, for the waits of call and send.

  enum class room : std::uint8_t {
    yes,      // it was taken
    wait,     // there is none, and there will be some
    full,     // there is none
    crashed,  // there was none, and that was too much for the agent
    gone,     // the agent has ended
    lost,     // its loop has ended; the message is gone
  };
  /// Gives a message to the agent. It stays the sender's unless the answer is `yes` or `lost`.
  room offer(envelope& e) noexcept;
  /// Puts it at the end of the line of those who wait for room. False: it cannot be taken back,
  /// because it is on its way there, or because the agent may get its home at any moment.
  bool enter_line(envelope& e) noexcept;
  /// Takes back what is in the line. REQUIRES: is_here().
  void leave_line(envelope& e) noexcept;
  /// Why it will be refusing messages from now on: its supervisor gave up. Null: not any more. Any
  /// thread, but one at a time.
  void blame(const std::shared_ptr<takedown>& why) noexcept;
  /// What a message to an agent that has ended gets.
  std::exception_ptr problem(errc code) const;
  errc ended_code() const noexcept {
    return gate_.load(std::memory_order_relaxed) == gate::crashed ? errc::agent_crashed
                                                                  : errc::agent_stopped;
  }
  /// errc::call_cycle if a handler of this agent waits for the running code; null if none does.
  std::exception_ptr cycle_here(const trail_ref& chain) const;
  bool may_be_reached() const noexcept;
  /// Why `offer` said that it is gone.
  std::exception_ptr refusal() const;
  /// What left the line has no claim on a place any more.
  void give_back_place() noexcept;
  const void* clock() const noexcept;
  void blockers(blocker_list& list) const;
  /// Answers a call; its result is set.
  void answer(call_envelope& e) const noexcept;
  void answer(call_envelope& e, std::exception_ptr problem) const noexcept;

  // ---- The end, for join and monitor. Any thread.

  /// False if it has ended for good.
  bool watch(end_watch& w) noexcept;
  void unwatch(end_watch& w) noexcept;

  /// Calls a member of a timer on the loop of the agent.
  void run_at_home(agent_timer& timer, void (agent_timer::*what)() noexcept) noexcept;

  /// The registry will keep its name; false if it has ended for good, and never will be kept.
  bool claim_name() noexcept { return (marks_.fetch_or(name_claimed) & name_over) == 0; }

  // ---- Its loop.

  void arrived(envelope& e) noexcept;
  void refused(envelope& e) noexcept;
  void stop_here(stop_ticket* told) noexcept;
  void crash_here() noexcept;
  /// The life that is alive; null if there is none.
  agent_life* life() const noexcept { return lives_; }
  /// Keeps a timer for the life that is about to begin; false if none is.
  bool await_life(agent_timer& timer) noexcept;
  /// What stood for it on the owner's loop is gone. If its life never began, it never will.
  void stand_in_ended() noexcept;
  void start_here(scope& owner, birth_listener* told, const std::shared_ptr<door>& listening);
  void shut_here(errc code) noexcept;
  void expect_life_here(bool was_stopped) noexcept;
  void finish_here(weir::ending how) noexcept;

 protected:
  virtual ~agent_core();
  bool keeps_arguments() const noexcept { return keeps_; }
  virtual void dispose() noexcept = 0;
  virtual agent_life* make_life() = 0;
  /// Constructs the object of a life; `own` is the scope of the incarnation if it wants one.
  virtual void construct(agent_life& life, scope* own) = 0;
  virtual bool wants_scope() const noexcept = 0;
  /// The arguments are not needed any more.
  virtual void drop_arguments() noexcept = 0;

 private:
  friend class agent_life;

  enum class gate : std::uint8_t { open, stopping, stopped, crashed };
  static constexpr std::uint32_t homeless = ~std::uint32_t{0};  // the number of no loop

  bool is_next_door() const noexcept;
  bool has_home() const noexcept {
    return home_serial_.load(std::memory_order_acquire) != homeless;
  }

  agent_extras& extras();  // made if need be
  bool has_parts() const noexcept { return extras_.load(std::memory_order_acquire) != nullptr; }
  agent_extras& parts() const noexcept { return *extras_.load(std::memory_order_acquire); }
  bool counts_places() const noexcept;
  bool reserve() noexcept;
  /// `oldest`: what falls out of the mailbox for that.
  room offer_here(envelope& e, envelope*& oldest) noexcept;
  room offer_away(envelope& e, envelope*& oldest) noexcept;
  void ask_to_crash() noexcept;
  bool post(envelope& e) noexcept;
  void append(envelope& e) noexcept;
  void push(envelope& e) noexcept;
  /// A call whose handler was unwound: it is answered when it is known what follows.
  void set_aside(envelope& e) noexcept;
  void refuse_set_aside(errc code) noexcept;
  envelope* take() noexcept;
  envelope* unlink_head() noexcept;
  void count_high() noexcept;
  envelope* oldest_in_excess() noexcept;
  void evict(envelope& oldest) noexcept;
  void admit_line() noexcept;
  void enter_line_here(envelope& e) noexcept;
  void sweep_line() noexcept;
  void wake() noexcept;
  void wake_all() noexcept;
  bool stop_due() const noexcept { return cut_ || due_; }
  void forget_stop() noexcept;
  fiber* start_in(scope& owner, scope::launch how, birth_listener* told,
                  const std::shared_ptr<door>& listening, std::source_location site);
  void reopen_here() noexcept;
  void life_is_coming() noexcept;
  void life_is_not_coming() noexcept;
  bool awaits_life() const noexcept;
  void settle_stops() noexcept;
  void life_began(agent_life& life) noexcept;
  void life_ended(agent_life& life) noexcept;
  void loop_crashed(agent_life& life) noexcept;
  void tell_watches() noexcept;
  void flush(errc code) noexcept;
  void flush_old(errc code) noexcept;
  void flush_line(errc code) noexcept;
  void refuse_message(envelope& e, errc code) noexcept;
  void set_state(agent_state s) noexcept { state_.store(s, std::memory_order_relaxed); }
  template <class F>
  void at_home(F&& what) noexcept;
  template <class F>
  void post_home(F&& what) noexcept;

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> home_serial_{homeless};
  std::shared_ptr<door> door_;
  const char* name_ = "";
  std::atomic<agent_extras*> extras_{nullptr};  // what few agents need; made once, behind a lock
  // The mailbox.
  envelope* head_ = nullptr;
  envelope* tail_ = nullptr;
  agent_life* idle_ = nullptr;   // lives that wait for a message, linked by strand::next
  agent_life* lives_ = nullptr;  // all of them; more than one only in an agent_pool
  std::atomic<std::uint64_t> queued_{0};
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> links_{0};  // handlers that run and are part of a chain
  std::atomic<gate> gate_{gate::open};
  std::atomic<agent_state> state_{agent_state::starting};
  std::atomic<weir::ending> ending_{weir::ending::normal};
  std::uint8_t alarms_ = 0;    // mailbox_high events since it was empty
  bool accepts_ : 1 = true;    // what arrives now is enqueued
  bool stopping_ : 1 = false;  // stop was asked: the lives end behind what was queued then
  bool due_ : 1 = false;       // that has been handled
  bool cut_ : 1 = false;       // cut_short was asked
  bool awaited_ : 1 = false;   // a life on another loop was asked for and has not begun

 protected:
  bool has_arguments_ : 1 = true;

 private:
  // Those above change on its loop. Those below never do, and any thread may read them, so they are
  // a memory location of their own.
  std::uint8_t : 0;
  bool supervised_ : 1 = false;
  bool revives_ : 1 = false;
  bool crash_on_error_ : 1 = false;
  bool keeps_mail_ : 1 = false;
  bool keeps_ : 1 = false;    // the arguments, for further lives
  bool bounded_ : 1 = false;  // its mailbox
  bool owns_name_ : 1 = false;
  // What has happened to its name and to itself, once and for ever.
  static constexpr std::uint8_t name_claimed = 1;
  static constexpr std::uint8_t name_over = 2;
  static constexpr std::uint8_t is_over = 4;
  std::atomic<std::uint8_t> marks_{0};
};

}  // namespace detail
}  // namespace weir
