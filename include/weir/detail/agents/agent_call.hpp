// SPDX-License-Identifier: MIT
// Typed messages, and the waits of their senders.
#pragma once

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

/// The parameters and result of a member function.
template <class F>
struct handler {
  static constexpr bool is_member = false;
};
template <class R, class C, class... P>
struct handler_signature {
  static constexpr bool is_member = true;
  using result = R;
  using owner = C;
  using arguments = std::tuple<std::decay_t<P>...>;
  static constexpr std::size_t arity = sizeof...(P);
  /// The number, from 1, of the first argument that does not convert to its parameter; 0 if all do.
  template <class... A>
  static constexpr std::size_t wrong_argument() {
    if constexpr (sizeof...(A) != sizeof...(P)) {
      return 0;
    } else {
      std::size_t at = 0;
      const bool all = ((++at, std::is_constructible_v<std::decay_t<P>, A>) && ...);
      return all ? 0 : at;
    }
  }
  /// Passes each argument as its parameter type.
  template <class T, class F, std::size_t... I>
  static R call(T& object, F fn, arguments& args, std::index_sequence<I...>) {
    return (object.*fn)(static_cast<P&&>(std::get<I>(args))...);
  }
};
template <class R, class C, class... P>
struct handler<R (C::*)(P...)> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) const> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) noexcept> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) const noexcept> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...)&> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) const&> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) & noexcept> : handler_signature<R, C, P...> {};
template <class R, class C, class... P>
struct handler<R (C::*)(P...) const & noexcept> : handler_signature<R, C, P...> {};

template <class R>
struct handler_value {
  using type = std::remove_cvref_t<R>;
};
template <class U>
struct handler_value<task<U>> {
  using type = U;
};
/// The result of a call of `F`: references are copied, tasks are awaited.
template <class F>
using call_result_t = typename handler_value<typename handler<F>::result>::type;

/// Whether `F` is a message of `T` that takes these arguments; if not, a static_assert says why.
template <class T, class F, class... A>
constexpr bool check_handler() {
  static_assert(handler<F>::is_member,
                "a message is a member function of the agent: ref.cast(&my_agent::inc, 3)");
  if constexpr (!handler<F>::is_member) {
    return false;
  } else if constexpr (!std::is_base_of_v<typename handler<F>::owner, T>) {
    static_assert(std::is_base_of_v<typename handler<F>::owner, T>,
                  "the message is a member function of another class than the agent's");
    return false;
  } else if constexpr (handler<F>::arity != sizeof...(A)) {
    static_assert(handler<F>::arity <= sizeof...(A),
                  "the handler does not take these arguments: there are too few");
    static_assert(handler<F>::arity >= sizeof...(A),
                  "the handler does not take these arguments: there are too many");
    return false;
  } else {
    constexpr std::size_t wrong = handler<F>::template wrong_argument<A...>();
    static_assert(wrong != 1,
                  "the handler does not take these arguments: the first one does not "
                  "convert to its parameter's type");
    static_assert(wrong != 2,
                  "the handler does not take these arguments: the second one does not "
                  "convert to its parameter's type");
    static_assert(wrong != 3,
                  "the handler does not take these arguments: the third one does not "
                  "convert to its parameter's type");
    static_assert(wrong < 4,
                  "the handler does not take these arguments: the fourth or a later one "
                  "does not convert to its parameter's type");
    return wrong == 0;
  }
}

[[noreturn]] void raise_empty_handler();

/// A handler with its arguments and the place of its result.
template <class T, class F>
struct handler_call {
  using traits = handler<F>;
  using value = call_result_t<F>;

  template <class... A>
  explicit handler_call(F f, A&&... given) : fn(f), args(std::forward<A>(given)...) {
    if (fn == nullptr) raise_empty_handler();
  }
  bool start(void* object, strand& s) noexcept {
    try {
      using plain = std::remove_cvref_t<typename traits::result>;
      if constexpr (is_task<plain>) {
        out.own_frame(call(object).release());
        frame& root = frame_of(out.frame());
        root.parent = nullptr;
        root.out = &out;
        s.leaf = &root;
        return true;
      } else if constexpr (std::is_void_v<value>) {
        call(object);
        out.emplace();
      } else {
        out.emplace(call(object));
      }
    } catch (...) {
      out.set_error(std::current_exception());
    }
    return false;
  }
  typename traits::result call(void* object) {
    return traits::call(*static_cast<T*>(object), fn, args,
                        std::make_index_sequence<traits::arity>());
  }

  F fn;
  typename traits::arguments args;
  outcome<value> out;
};

/// `Base` is envelope or call_envelope.
template <class Base, class T, class F>
struct typed_envelope final : Base {
  template <class... A>
  explicit typed_envelope(F fn, A&&... args) : inner(fn, std::forward<A>(args)...) {}
  bool start(void* object, strand& s) override { return inner.start(object, s); }
  outcome_base& result() noexcept override { return inner.out; }
  void dispose() noexcept override { delete this; }
  handler_call<T, F> inner;
};
template <class T, class F>
using cast_envelope = typed_envelope<envelope, T, F>;
template <class T, class F>
using call_envelope_of = typed_envelope<call_envelope, T, F>;

/// A message that has not been sent.
template <class E>
class envelope_owner {
 public:
  explicit envelope_owner(E* e) noexcept : e_(e) {}
  envelope_owner(envelope_owner&& other) noexcept : e_(std::exchange(other.e_, nullptr)) {}
  envelope_owner& operator=(envelope_owner&&) = delete;
  ~envelope_owner() {
    if (e_ != nullptr) e_->dispose();
  }
  E* get() const noexcept { return e_; }
  E* release() noexcept { return std::exchange(e_, nullptr); }

 private:
  E* e_;
};

/// A message and its receiver: returned by `call` and `send`, to be awaited.
template <class E>
struct message_args {
  message_args(agent_handle a, E* e) noexcept : to(std::move(a)), what(e) {}
  agent_handle to;
  envelope_owner<E> what;
};

/// Waits for the answer of an agent. When cancelled, it abandons the message: if it is still in the
/// mailbox it is skipped; if it is being handled, its answer is late.
class call_wait_base : public wait {
 public:
  using args = message_args<call_envelope>;

  bool poll() override { return try_now(); }
  void link() override { arm(); }
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept {
    return error_ != nullptr || message_ == nullptr || !message_->result().is_value();
  }
  /// A time limit directly around it.
  void limit_to(time_point at) noexcept { limit_ = at; }
  /// Called when the answer has arrived.
  void answered() noexcept;

 protected:
  explicit call_wait_base(args&& a) noexcept : to_(std::move(a.to)), message_(a.what.release()) {}
  ~call_wait_base();
  outcome_base& taken() {
    if (error_ != nullptr) std::rethrow_exception(error_);
    return message_->result();
  }

 private:
  void abandon() noexcept;
  agent_handle to_;
  call_envelope* message_;  // null: abandoned
  std::exception_ptr error_;
  time_point limit_ = time_point::max();
};

template <class T>
class call_wait : public call_wait_base {
 public:
  using result = T;
  explicit call_wait(args&& a) noexcept : call_wait_base(std::move(a)) {}
  T take() { return static_cast<outcome<T>&>(taken()).take(); }
};

/// Waits until a message is in the mailbox.
class mail_send_wait : public wait {
 public:
  using args = message_args<envelope>;
  using result = void;
  explicit mail_send_wait(args&& a) noexcept : to_(std::move(a.to)), message_(a.what.release()) {}
  ~mail_send_wait();

  bool poll() override { return try_now(); }
  void link() override { arm(); }
  bool try_now();
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept { return error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  /// Called on the sender's loop when the decision has arrived.
  void answered() noexcept;
  void take() {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  agent_handle to_;
  envelope* message_;              // null: the agent has it
  room_ticket* ticket_ = nullptr;  // while it waits
  std::exception_ptr error_;
};

/// Waits for the permanent termination of an agent.
class end_wait_base : public wait {
 public:
  struct args {
    agent_handle of;
  };
  bool poll() override { return try_now(); }
  void link() override { arm(); }
  bool try_now() const noexcept { return of_->ended_for_good(); }
  void arm();
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept { return false; }
  /// Called when the notification has arrived.
  void answered() noexcept;

 protected:
  explicit end_wait_base(args&& a) noexcept : of_(std::move(a.of)) {}
  ~end_wait_base();
  agent_core& agent() const noexcept { return *of_.get(); }

 private:
  agent_handle of_;
  end_watch* watch_ = nullptr;
};

class join_agent_wait : public end_wait_base {
 public:
  using result = void;
  explicit join_agent_wait(args&& a) noexcept : end_wait_base(std::move(a)) {}
  void take() const noexcept {}
};

class monitor_wait : public end_wait_base {
 public:
  using result = weir::ending;
  explicit monitor_wait(args&& a) noexcept : end_wait_base(std::move(a)) {}
  weir::ending take() const noexcept { return agent().how_it_ended(); }
};

}  // namespace weir::detail
