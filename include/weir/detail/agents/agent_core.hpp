// SPDX-License-Identifier: MIT
// The type-independent part of an agent: its name, its mailbox, and its successive lives. The
// phases of the life cycle stand in agent_phase.hpp, the rules of the mailbox in mailbox.hpp.
//
// Thread safety:
// 1. The counts, the gate and the places of a bounded mailbox are atomic: any thread.
// 2. The mailbox, the waiting senders and the lives belong to the agent's loop. Other threads post
//    messages to it; each message in flight keeps the core alive.
// 3. An agent that was created outside any loop has no home until its supervisor runs. Until then a
//    lock protects its mailbox.
//
// Invariants:
// 4. A message is in one place: with its sender, in flight, in the mailbox (or in the line of
//    waiting senders), or being handled. The code that removes it from the last two answers it, so
//    each call has exactly one answer.
// 5. A life ends after its handler, the scope of the incarnation and its defers; then the owner
//    starts the next life. Stop requests, timers and answers belong to one life.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <weir/detail/agents/agent_phase.hpp>
#include <weir/detail/agents/mailbox.hpp>
#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/message.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/future.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/scope.hpp>

namespace weir {

/// What happened to a cast.
enum class sent : std::uint8_t {
  enqueued,  ///< it is in the mailbox, or in flight to it
  full,      ///< there was no room, and nothing was enqueued
  dropped,   ///< there was no room, and it was dropped
  stopped,   ///< the agent has ended or is stopping; it was dropped
};

/// How an agent terminated permanently.
enum class ending : std::uint8_t {
  normal,     ///< it was asked to stop, or had finished
  cancelled,  ///< by a cancellation, or because a time limit expired
  crashed,    ///< by its own error, and was not restarted
  escalated,  ///< its supervisor gave up
};

enum class agent_state : std::uint8_t { starting, idle, running, stopping, restarting, ended };

/// The effect of a handler's error in a call; in a cast it always crashes the agent.
enum class on_error : std::uint8_t {
  reply,  ///< the caller gets it, and the agent continues
  crash,  ///< the caller gets it, and the agent crashes
};

/// What happens to queued casts when the agent is restarted.
enum class mailbox : std::uint8_t { drop, keep };

struct agent_info {
  std::string name;
  agent_state state = agent_state::starting;
  std::uint64_t generation = 0;  ///< 1 is the first life
  std::uint64_t restarts = 0;
  std::uint64_t queued = 0;
  std::uint64_t handled = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;  ///< calls that expired or were cancelled while queued
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
struct agent_extra;

using agent_handle = counted_ref<agent_core>;

/// A handler that waits for the answer to a call, and the handlers that wait for it.
class chain_link final : public trail {
 public:
  chain_link(agent_core& handler, trail_ref around);
  ~chain_link() override;
  const agent_handle agent;
  trail_ref outer;  // a chain_link, or null; never changes
  std::atomic<bool> running{true};
};

/// One message: a handler with its arguments.
struct envelope : message, frame_allocated {
  explicit envelope(bool asks = false) noexcept : is_call(asks) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override;
  /// Starts the handler of `object` in the running strand. False: it has ended, and its result is
  /// set.
  virtual bool start(void* object, strand& s) = 0;
  virtual outcome_base& result() noexcept = 0;
  virtual void dispose() noexcept = 0;

  union {
    agent_core* to = nullptr;  // counted, while in flight
    envelope* before;          // while it waits for room
  };
  bool is_call;
  bool to_line = false;           // in flight to the line
  bool in_line = false;           // waits for room in the mailbox
  bool orphaned = false;          // a call whose caller's loop has crashed: its answer is dropped
  room_ticket* ticket = nullptr;  // the wait for its acceptance

 protected:
  ~envelope() = default;
};

/// A message whose sender waits for the result; it travels to the agent and back. The agent
/// declines a call whose deadline has passed: its caller times out by itself.
struct call_envelope : reply_to<call_wait_base, envelope> {
  call_envelope() noexcept : reply_to(true) {}
  /// The caller was cancelled: the call is skipped, or its answer is late.
  bool is_given_up() const noexcept { return is_abandoned() && !orphaned; }

  time_point deadline = time_point::max();
  trail_ref chain;

 protected:
  ~call_envelope() = default;
};

/// Notified when the constructor of a new life has returned. On the owner's loop.
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
  weir::mailbox on_restart = weir::mailbox::drop;
  std::source_location site;
  bool supervised = false;  // the owner decides what follows a life
  bool revives = false;     // it is always restarted
  bool keeps = false;       // the arguments are kept for restarts
  std::uint32_t lives = 1;  // concurrent lives: those of an agent_pool
};
/// Throws errc::invalid_argument.
void check_mailbox(const char* what, std::string_view name, std::int64_t capacity, overflow how);

class agent_core : public polite_service, public counted<agent_core>, public frame_allocated {
 public:
  explicit agent_core(agent_setup&& setup);

  // ---- Any thread.

  std::string_view name() const noexcept { return name_; }
  /// An address that is unique to the type of the agent.
  virtual const void* type() const noexcept = 0;
  sent cast(envelope* message) noexcept;
  agent_info info() const;
  future<void> stop();
  /// True after permanent termination; false while a message may still reach it.
  bool ended_for_good() const noexcept { return cycle_.is_over(); }
  weir::ending how_it_ended() const noexcept { return ending_.load(std::memory_order_relaxed); }
  bool is_here() const noexcept {
    return home_serial_.load(std::memory_order_relaxed) == current_loop_serial();
  }
  loop_ref where() const noexcept;
  void count_dropped(std::uint64_t n) noexcept { dropped_.fetch_add(n, std::memory_order_relaxed); }

  // ---- The owner (a scope or a supervisor), on its own loop.

  /// Binds an agent without a home to the running loop.
  void settle_home();
  /// Starts the next life as a child of `owner`, or, on another loop, a child that represents it.
  /// `listener`, if set, is notified when the constructor has returned. The caller gets a counted
  /// reference to the fiber.
  fiber* begin_life(scope& owner, scope::launch how, birth_listener* listener,
                    std::source_location site = {});
  /// How many begin_life calls start all its concurrent lives.
  std::uint32_t fibers_to_begin() const noexcept;
  /// Asks the life to end after its current handler, regardless of the mailbox. `restarts`: another
  /// life will follow, and messages that arrive meanwhile are kept for it.
  void cut_short(bool restarts) noexcept;
  /// The life has ended and another will follow: queued calls fail with errc::agent_restarted, and
  /// casts are dropped, unless .on_restart keeps them or the life ended because of stop().
  void expect_life(bool was_stopped) noexcept;
  /// The life has ended and no other follows unless the owner revives the agent: all queued
  /// messages are dropped, and queued and later calls fail with `code`.
  void shut(errc code) noexcept;
  /// Permanent termination: as `shut`, and notifies all watches of how it ended.
  void finish(weir::ending how) noexcept;
  /// As stop(), on behalf of the owning scope when that ends.
  void ask_to_end() noexcept override;

  // ---- Senders, for the waits of call and send.

  enum class room : std::uint8_t {
    yes,      // the message was accepted
    wait,     // no room now; wait for it
    full,     // no room
    crashed,  // no room, which crashed the agent
    gone,     // the agent has ended
    lost,     // its loop has ended; the message is destroyed
  };
  /// Offers a message to the agent. The sender keeps it unless the answer is `yes` or `lost`.
  room offer(envelope& e) noexcept;
  /// Puts it at the end of the line of messages that wait for room. False: it cannot be withdrawn,
  /// because it is in flight to the line, or because the agent may get its home at any moment.
  bool enter_line(envelope& e) noexcept;
  /// Withdraws a message from the line and gives back its place. REQUIRES: is_here().
  void leave_line(envelope& e) noexcept;
  /// Records why it refuses messages from now on: its supervisor gave up. Null: clears that. Any
  /// thread, but one at a time.
  void blame(const std::shared_ptr<takedown>& why) noexcept;
  /// The error, with this code, of a message that is not handled.
  std::exception_ptr problem(errc code) const;
  errc ended_code() const noexcept { return mail_.refusal_code(); }
  /// errc::call_cycle if a handler of this agent waits for the running code; null if none does.
  std::exception_ptr cycle_here(const trail_ref& chain) const;
  bool may_be_reached() const noexcept;
  /// Why `offer` returned `gone`.
  std::exception_ptr refusal() const;
  const void* clock() const noexcept;
  void blockers(blocker_list& list) const;
  /// Answers a call. REQUIRES: its result is set.
  void answer(call_envelope& e) const noexcept;
  void answer(call_envelope& e, std::exception_ptr problem) const noexcept;

  // ---- The end, for join and monitor. Any thread.

  /// False if it has terminated permanently.
  bool watch(end_watch& w) noexcept;
  void unwatch(end_watch& w) noexcept;

  /// Calls a member of a timer on the loop of the agent.
  void run_at_home(agent_timer& timer, void (agent_timer::*what)() noexcept) noexcept;

  /// Marks that the registry keeps its name; false if the agent has terminated permanently and must
  /// not be registered.
  bool claim_name() noexcept { return (marks_.fetch_or(name_claimed) & name_over) == 0; }

  // ---- Its loop.

  void arrived(envelope& e) noexcept;
  void refused(envelope& e) noexcept;
  void stop_here(stop_ticket* ticket) noexcept;
  void crash_here() noexcept;
  /// The current life; null if there is none.
  agent_life* life() const noexcept { return lives_; }
  /// Keeps a timer for the life that is about to start; false if there is none.
  bool await_life(agent_timer& timer) noexcept;
  /// The child that represents it on the owner's loop has ended. If its life has not begun, it
  /// never will.
  void stand_in_ended() noexcept;
  void start_here(scope& owner, birth_listener* listener, const std::shared_ptr<door>& listening);
  void shut_here(errc code) noexcept;
  void expect_life_here(bool was_stopped) noexcept;
  void finish_here(weir::ending how) noexcept;

 protected:
  virtual ~agent_core();
  bool keeps_arguments() const noexcept { return keeps_; }
  virtual agent_life* make_life() = 0;
  /// Constructs the object of a life; `own` is the scope of the incarnation, if its constructor
  /// takes one.
  virtual void construct(agent_life& life, scope* own) = 0;
  virtual bool wants_scope() const noexcept = 0;
  /// Destroys the arguments.
  virtual void drop_arguments() noexcept = 0;

 private:
  friend class agent_life;
  friend class counted<agent_core>;

  static constexpr std::uint32_t homeless = ~std::uint32_t{0};  // not the number of any loop

  bool is_next_door() const noexcept;
  bool has_home() const noexcept {
    return home_serial_.load(std::memory_order_acquire) != homeless;
  }

  agent_extra& need_extra();  // created on first use
  bool has_extra() const noexcept { return mail_.get_extra() != nullptr; }
  agent_extra& extra() const noexcept;
  /// `oldest` receives the message that it displaces from the mailbox.
  room offer_here(envelope& e, envelope*& oldest) noexcept;
  room offer_away(envelope& e, envelope*& oldest) noexcept;
  void ask_to_crash() noexcept;
  bool post(envelope& e) noexcept;
  void push(envelope& e) noexcept;
  void report_length(std::uint64_t length) noexcept;
  /// Keeps a call whose handler was unwound: it is answered when it is known what follows the life.
  void set_aside(envelope& e) noexcept;
  void refuse_set_aside(errc code) noexcept;
  envelope& take() noexcept;
  envelope* take_excess() noexcept;
  void check_drained() noexcept;
  void evict(envelope& oldest) noexcept;
  room no_room() const noexcept;
  void admit_line() noexcept;
  void enter_line_here(envelope& e) noexcept;
  void wake() noexcept;
  void wake_all() noexcept;
  fiber* start_in(scope& owner, scope::launch how, birth_listener* listener,
                  const std::shared_ptr<door>& listening, std::source_location site);
  void reopen_here() noexcept;
  bool stop_awaits_first_life() const noexcept;
  void life_is_coming() noexcept;
  void forget_early_requests() noexcept;
  bool awaits_life() const noexcept;
  void settle_stops() noexcept;
  void life_began(agent_life& life) noexcept;
  void life_ended(agent_life& life) noexcept;
  void loop_crashed(agent_life& life) noexcept;
  void notify_watches() noexcept;
  void flush(errc code) noexcept;
  void flush_old(errc code) noexcept;
  void flush_line(errc code) noexcept;
  void refuse_message(envelope& e, errc code) noexcept;
  template <class F>
  void at_home(F&& what) noexcept;
  template <class F>
  void post_home(F&& what) noexcept;

  std::atomic<std::uint32_t> home_serial_{homeless};
  std::shared_ptr<door> door_;
  const char* name_ = "";
  agent_life* idle_ = nullptr;   // lives that wait for a message, linked by strand::next
  agent_life* lives_ = nullptr;  // all lives; more than one only in an agent_pool
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> links_{0};       // running handlers that are part of a chain
  [[no_unique_address]] agent_mailbox mail_;  // the bytes below fill its last word, except one
  life_cycle cycle_;
  std::atomic<weir::ending> ending_{weir::ending::normal};  // or crashed, when one life has crashed
  // These never change, and any thread may read them.
  bool supervised_ : 1 = false;
  bool revives_ : 1 = false;
  bool crash_on_error_ : 1 = false;
  bool keeps_mail_ : 1 = false;
  bool keeps_ : 1 = false;  // keeps the arguments for restarts
  bool owns_name_ : 1 = false;
  // Marks of its name in the registry, which are set once and never cleared.
  static constexpr std::uint8_t name_claimed = 1;
  static constexpr std::uint8_t name_over = 2;
  std::atomic<std::uint8_t> marks_{0};
};
static_assert(sizeof(void*) != 8 || sizeof(agent_core) <= 128, "two cache lines per agent");

}  // namespace detail
}  // namespace weir
