// SPDX-License-Identifier: MIT
#include <weir/detail/flow/channel_core.hpp>

#include <bit>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"
#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir::detail {

/// Wakes the receiver: the channel is not empty any more. Part of the channel; at most one is in
/// flight.
struct channel_core::call_message final : message {
  explicit call_message(channel_core& c) noexcept : channel(&c) {}
  void deliver(loop&) noexcept override {
    channel->called();
    channel->release();
  }
  void refuse() noexcept override { channel->call_refused(); }
  channel_core* channel;
};

struct channel_core::shared {
  explicit shared(channel_core& c) noexcept : call(c) {}
  call_message call;
  door_ref receiver;  // written under the lock or before `receiver_waits_` is set; other threads
                      // read it under the lock
  std::mutex mutex;
  door_ref called;         // the loop that `call` was posted to
  bool call_lost = false;  // `call` was refused, and no new home is known yet
  send_envelope* first = nullptr;
  send_envelope* last = nullptr;
};

/// A thread without a loop that waits for the answer.
struct blocked_thread {
  /// False if `limit` expired first.
  bool wait_for(duration limit) {
    std::unique_lock lock(mutex);
    const auto is_here = [&] { return answered; };
    constexpr duration longest = std::chrono::hours(24 * 365 * 100);  // fits any clock
    if (limit < longest) return notified.wait_for(lock, limit, is_here);
    notified.wait(lock, is_here);
    return true;
  }
  // Notifies under the lock: after unlocking, the woken thread may destroy this object.
  void notify() {
    const std::lock_guard lock(mutex);
    answered = true;
    notified.notify_one();
  }
  std::mutex mutex;
  std::condition_variable notified;
  bool answered = false;
};

send_envelope::send_envelope(channel_core& to, this_thread_t)
    : channel_(&to), thread_(std::make_unique<blocked_thread>()) {
  to.retain();
}

send_envelope::send_envelope(channel_core& to) : channel_(&to) { to.retain(); }

send_envelope::~send_envelope() { channel_->release(); }

// ------------------------------------------------------------------ waiting senders

void send_wait_base::start_waiting() noexcept {
  envelope_->ask(*this);
  const channel_core::room answer = envelope_->channel_->enter(*envelope_);
  if (answer == channel_core::room::full) return;
  envelope_->take_back();
  refused_ = answer == channel_core::room::closed;
  error_ = envelope_->error_;
  complete();
}

void send_wait_base::answered() noexcept {
  refused_ = envelope_->refused_;
  error_ = envelope_->error_;
  complete();
}

cancel_result send_wait_base::withdraw() noexcept {
  if (!envelope_->channel_->leave(*envelope_)) return cancel_result::no;  // it has been answered
  envelope_->take_back();
  return cancel_result::done;
}

send_wait_base::~send_wait_base() {
  if (envelope_ != nullptr) envelope_->leave();
}

void send_wait_base::describe(dump_line& line) const {
  if (envelope_ == nullptr) return void(line.add("send to a channel"));  // not armed yet
  envelope_->channel_->describe(line, "send to");
}

void send_wait_base::raise_problem(const channel_core* channel) const {
  if (error_ != nullptr) std::rethrow_exception(error_);
  raise_send_closed(channel);
}

void raise_send_closed(const channel_core* channel) {
  if (channel != nullptr) channel->raise_closed();
  raise(errc::queue_closed, "send on an empty sender; it was moved from or never had a channel");
}

// ------------------------------------------------------------------ waiting threads

void require_no_loop(const char* what, const char* instead) {
  if (loop::here() == nullptr) return;
  raise(errc::would_deadlock, std::string(what) + " on the thread of loop '" +
                                  loop::here()->own_door().name() +
                                  "' would block everything else on it; use " + instead);
}

// On timeout it leaves the list. If it was unlinked concurrently, the answer is on its way.
void wait_for_room(send_envelope& e, duration limit) {
  struct owner {
    ~owner() { of.dispose(); }
    send_envelope& of;
  } const mine{e};
  channel_core& channel = *e.channel_;
  const channel_core::room entered = channel.enter(e);
  if (entered == channel_core::room::closed) channel.raise_closed();
  if (entered == channel_core::room::full && !e.thread_->wait_for(limit)) {
    if (channel.leave(e))
      throw timeout_error(text_of(channel.self()) + ": no room for a value in time");
    (void)e.thread_->wait_for(duration::max());
  }
  if (e.error_ != nullptr) std::rethrow_exception(e.error_);
  if (e.refused_) channel.raise_closed();
}

// ------------------------------------------------------------------ the channel

namespace {

constexpr std::int64_t most_slots = std::int64_t{1} << 31;

std::int64_t checked(std::int64_t capacity, const channel_options& options) {
  require_no_run("channel", options.name.view());
  if (capacity < 1 || capacity > most_slots)
    raise(errc::invalid_argument, text_of({"channel", options.name.view()}) + ": a capacity of " +
                                      std::to_string(capacity) + " is not in 1.." +
                                      std::to_string(most_slots));
  return capacity;
}

}  // namespace

channel_core::channel_core(std::int64_t capacity, const channel_options& options)
    : counted(2),
      capacity_(checked(capacity, options)),
      slots_(std::bit_ceil(static_cast<std::uint64_t>(capacity))),
      shared_(std::make_unique<shared>(*this)),
      name_(options.name) {}

channel_core::~channel_core() = default;

void channel_core::let_others_run() noexcept { std::this_thread::yield(); }
bool channel_core::may_put_back() noexcept { return !in_dead_world(); }

void channel_core::raise_closed() const {
  raise(errc::queue_closed, text_of(self()) + " is closed: it takes no more values");
}

// A wake-up owed to the previous home loop is now owed to this one.
void channel_core::settle_home() {
  home_.settle(self(), "send through a sender", false);
  if (loop::here() == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->receiver = loop::here()->shared_door();
  if (std::exchange(shared_->call_lost, false)) call_due_ = false;
}

void channel_core::check_end() const noexcept {
  consumers_.require_empty(self());
  if (home_.is_here()) return;
  const door_ref lives = home_.serial() == 0 ? nullptr : door_table::find_serial(home_.serial());
  if (lives != nullptr && lives->thread != std::this_thread::get_id())
    fatal("the receiver of " + text_of(self()) + " destroyed on another thread than that of its " +
          "loop '" + lives->name() + "'");
}

void channel_core::describe(dump_line& line, const char* what) const {
  line.add(what).add(" channel").add_name(name_.view());
}

void require_receiver(channel_core* channel) {
  if (channel == nullptr)
    raise(errc::invalid_argument, "receiver without a channel; it was moved from");
  channel->settle_home();
}

void channel_core::drop_sender() noexcept {
  if (senders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  end_sending();
  release();
}

void channel_core::end_sending() noexcept {
  if ((tail_.fetch_or(1, std::memory_order_seq_cst) & 1U) != 0) return;
  if (receiver_waits_.load(std::memory_order_seq_cst)) call_receiver();
  std::unique_lock lock(shared_->mutex);
  while (send_envelope* e = shared_->first) {
    unlink(*e);
    e->refused_ = true;
    lock.unlock();
    answer(*e);
    lock.lock();
  }
}

// ------------------------------------------------------------------ waking the receiver

void channel_core::call_receiver() noexcept {
  if (!receiver_waits_.exchange(false, std::memory_order_seq_cst)) return;
  const loop* here = loop::here();
  // Once the message is posted, the receiver may store a new door and drop the old one.
  door_ref there;
  {
    const std::lock_guard lock(shared_->mutex);
    there = shared_->called = shared_->receiver;
  }
  if (here != nullptr && here->serial() == there->serial()) return called();
  retain();
  there->post(shared_->call);
}

// The loop had ended. If the receiver has moved to another loop, post the call there.
void channel_core::call_refused() noexcept {
  door_ref there;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->call_lost = shared_->receiver == shared_->called;
    if (!shared_->call_lost) there = shared_->called = shared_->receiver;
  }
  if (there == nullptr) return release();
  there->post(shared_->call);
}

void channel_core::called() noexcept {
  call_due_ = false;
  if (!consumers_.empty() && !serving_) serve();
}

bool channel_core::will_be_called() noexcept {
  if (!call_due_) {
    call_due_ = true;
    if (shared_->receiver != loop::here()->shared_door())
      shared_->receiver = loop::here()->shared_door();
    receiver_waits_.store(true, std::memory_order_seq_cst);
  }
  if (!has_something()) return true;
  if (!receiver_waits_.exchange(false, std::memory_order_seq_cst)) return true;
  call_due_ = false;
  return false;
}

void channel_core::add_consumer(linked_wait& w) noexcept {
  consumers_.push_back(w);
  due_.expect();
}

void channel_core::remove_consumer(linked_wait& w) noexcept {
  consumers_.remove(w);
  if (consumers_.empty()) due_.settle();
}

// ------------------------------------------------------------------ waiting for room

void channel_core::link(send_envelope& e) noexcept {
  e.linked_ = true;
  e.previous_ = shared_->last;
  e.next_ = nullptr;
  (shared_->last == nullptr ? shared_->first : shared_->last->next_) = &e;
  shared_->last = &e;
  add_sender();
}

void channel_core::unlink(send_envelope& e) noexcept {
  e.linked_ = false;
  (e.previous_ == nullptr ? shared_->first : e.previous_->next_) = e.next_;
  (e.next_ == nullptr ? shared_->last : e.next_->previous_) = e.previous_;
  if (shared_->first == nullptr) senders_wait_.store(false, std::memory_order_relaxed);
}

// Sets the flag before checking for room again: see point 3 in channel_core.hpp.
channel_core::room channel_core::enter(send_envelope& e) noexcept {
  std::unique_lock lock(shared_->mutex);
  const bool is_first = shared_->first == nullptr;
  senders_wait_.store(true, std::memory_order_seq_cst);
  std::uint64_t position = 0;
  const room answer = is_first ? reserve_first(position) : is_closed() ? room::closed : room::full;
  if (answer == room::full) {
    link(e);
    return answer;
  }
  if (is_first) senders_wait_.store(false, std::memory_order_relaxed);
  lock.unlock();
  if (answer == room::yes) e.error_ = accept(e, position);
  return answer;
}

bool channel_core::leave(send_envelope& e) noexcept {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!e.linked_) return false;
    unlink(e);
  }
  drop_sender();
  return true;
}

send_envelope* channel_core::admit_one(std::uint64_t& position) noexcept {
  const std::lock_guard lock(shared_->mutex);
  send_envelope* first = shared_->first;
  if (first == nullptr || reserve_first(position) != room::yes) return nullptr;
  unlink(*first);
  return first;
}

void channel_core::admit_waiting() noexcept {
  std::uint64_t position = 0;
  while (send_envelope* e = admit_one(position)) {
    e->error_ = accept(*e, position);
    answer(*e);
  }
}

void channel_core::answer(send_envelope& e) noexcept {
  if (e.thread_ != nullptr) {
    e.thread_->notify();
    return drop_sender();
  }
  retain();
  if (e.claim()) {
    e.answer();
  } else {
    e.dispose();
  }
  drop_sender();
  release();
}

}  // namespace weir::detail
