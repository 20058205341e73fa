// SPDX-License-Identifier: MIT
// The machinery of use_weir: an Asio operation as a wait.
//
// The operation is initiated when the wait is armed, with a handler that refers to the wait. The
// handler's associated
// - executor is that of the I/O object if its context hosts the waiting loop, otherwise the host of
//   that loop, otherwise the loop itself (its inbox). So intermediate handlers of composed
//   operations run on the loop's thread, and the cancellation slot is used on one thread.
// - allocator is the frame cache.
// - cancellation slot is that of a signal in the wait, which a cancellation emits. An operation
//   that has put nothing there cannot be cancelled: the answer is `no`.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <weir/detail/core/frame_allocator.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/detail/io/outside_wait.hpp>
#include <weir/interop/detail/asio_service.hpp>
#include <weir/loop_ref.hpp>

namespace weir::detail {

/// An executor that runs functions on a loop, between two turns.
class loop_executor {
 public:
  loop_executor(loop_ref to, boost::asio::execution_context& context) noexcept
      : to_(to), context_(&context) {}
  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
    return *context_;
  }
  static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  loop_executor require(boost::asio::execution::blocking_t::never_t) const noexcept {
    return *this;
  }
  template <class F>
  void execute(F fn) const {
    to_.post(std::move(fn));
  }
  friend bool operator==(const loop_executor& a, const loop_executor& b) noexcept = default;

 private:
  loop_ref to_;
  boost::asio::execution_context* context_;  // of the I/O object
};

/// What an operation with the completion signature void(Args...) gives: its error, which is the
/// first argument if that is an error_code or an exception_ptr, and its values.
template <class... Args>
class asio_result {
 public:
  using type = std::conditional_t<sizeof...(Args) == 0, std::tuple<>, std::tuple<Args...>>;
  void store(Args... args) { values_.emplace(std::move(args)...); }
  bool has_error() const noexcept { return false; }
  bool has_value() const noexcept { return sizeof...(Args) > 0 && values_.has_value(); }
  void rethrow() const noexcept {}
  type& values() noexcept { return *values_; }

 private:
  std::optional<type> values_;
};
template <class... Args>
class asio_result<boost::system::error_code, Args...> : public asio_result<Args...> {
 public:
  void store(const boost::system::error_code& error, Args... args) {
    error_ = error;
    asio_result<Args...>::store(std::move(args)...);
  }
  bool has_error() const noexcept { return error_.failed(); }
  bool has_value() const noexcept { return !has_error() && asio_result<Args...>::has_value(); }
  void rethrow() const {
    if (has_error()) throw boost::system::system_error(error_);
  }

 private:
  boost::system::error_code error_;
};
template <class... Args>
class asio_result<std::exception_ptr, Args...> : public asio_result<Args...> {
 public:
  void store(std::exception_ptr error, Args... args) {
    error_ = std::move(error);
    asio_result<Args...>::store(std::move(args)...);
  }
  bool has_error() const noexcept { return error_ != nullptr; }
  bool has_value() const noexcept { return !has_error() && asio_result<Args...>::has_value(); }
  void rethrow() const {
    if (has_error()) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

template <class Tuple>
struct asio_value {
  using type = Tuple;
};
template <>
struct asio_value<std::tuple<>> {
  using type = void;
};
template <class T>
struct asio_value<std::tuple<T>> {
  using type = T;
};

/// The wait without its initiation.
template <class... Args>
class asio_wait_base : public outside_wait {
 public:
  using result = typename asio_value<typename asio_result<Args...>::type>::type;

  cancel_result withdraw() noexcept override {
    if (!signal_.slot().has_handler()) return cancel_result::no;
    state_ = state::leaving;
    signal_.emit(boost::asio::cancellation_type::all);
    return cancel_result::later;
  }
  bool failed() const noexcept { return problem_ != nullptr || result_.has_error(); }
  result take() {
    if (problem_ != nullptr) std::rethrow_exception(problem_);
    result_.rethrow();
    if constexpr (std::is_void_v<result>) {
      return;
    } else if constexpr (std::is_same_v<result, typename asio_result<Args...>::type>) {
      return std::move(result_.values());
    } else {
      return std::get<0>(std::move(result_.values()));
    }
  }

  // For the handler.

  boost::asio::cancellation_slot slot() noexcept { return signal_.slot(); }
  template <class... Given>
  void completed(Given&&... given) {
    try {
      result_.store(std::forward<Given>(given)...);
    } catch (...) {
      problem_ = std::current_exception();
    }
    this->finished();
  }
  void dropped() noexcept { this->abandoned(); }
  /// `of_object` itself where that is possible: copying it costs more than what it is asked for.
  template <class Executor>
  const boost::asio::any_io_executor& executor(const Executor& of_object) {
    boost::asio::execution_context& context =
        boost::asio::query(of_object, boost::asio::execution::context);
    if (guest() == nullptr) return away_ = loop_executor(home(), context);
    boost::asio::io_context& host = static_cast<asio_service&>(guest()->host()).context();
    if (&context != &host) return away_ = host.get_executor();
    if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
      return of_object;
    } else {
      return away_ = of_object;
    }
  }

 protected:
  ~asio_wait_base() = default;
  bool has_value() const noexcept override { return problem_ == nullptr && result_.has_value(); }

 private:
  asio_result<Args...> result_;
  boost::asio::cancellation_signal signal_;
  boost::asio::any_io_executor away_;  // not that of the I/O object
};

/// The handler: moved along by Asio, and called once or destroyed.
template <class... Args>
class asio_handler {
 public:
  using cancellation_slot_type = boost::asio::cancellation_slot;
  using allocator_type = frame_allocator<void>;

  explicit asio_handler(asio_wait_base<Args...>& w) noexcept : wait_(&w) {}
  asio_handler(asio_handler&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
  asio_handler& operator=(asio_handler&&) = delete;
  ~asio_handler() {
    if (wait_ != nullptr) wait_->dropped();
  }

  template <class... Given>
  void operator()(Given&&... given) {
    std::exchange(wait_, nullptr)->completed(std::forward<Given>(given)...);
  }
  cancellation_slot_type get_cancellation_slot() const noexcept {
    return wait_ == nullptr ? cancellation_slot_type() : wait_->slot();
  }
  allocator_type get_allocator() const noexcept { return {}; }
  /// REQUIRES: it was not moved from.
  template <class Executor>
  const boost::asio::any_io_executor& executor(const Executor& of_object) const {
    return wait_->executor(of_object);
  }

 private:
  asio_wait_base<Args...>* wait_;
};

template <class Signature, class Initiation, class... Given>
class asio_wait;
template <class... Args, class Initiation, class... Given>
class asio_wait<void(Args...), Initiation, Given...> : public asio_wait_base<Args...> {
 public:
  /// Made by a constructor: see docs/compilers.md.
  struct args {
    template <class I, class... G>
    explicit args(std::in_place_t, I&& i, G&&... g)
        : initiation(std::forward<I>(i)), given(std::forward<G>(g)...) {}
    Initiation initiation;
    std::tuple<Given...> given;
  };

  explicit asio_wait(args&& a) : args_(std::move(a)) {}
  void link() override { arm(); }
  void arm() noexcept {
    if (!this->begin()) return;
    try {
      std::apply(
          [&](Given&... given) {
            std::move(args_.initiation)(asio_handler<Args...>(*this), std::move(given)...);
          },
          args_.given);
    } catch (...) {
      // The handler was destroyed meanwhile, which is how the wait has ended.
      this->problem_ = std::current_exception();
    }
  }

 private:
  args args_;
};

template <class Signature>
struct asio_signature;
template <class... Args>
struct asio_signature<void(Args...)> {
  using type = void(std::decay_t<Args>...);
};
template <class... Args>
struct asio_signature<void(Args...)&> : asio_signature<void(Args...)> {};
template <class... Args>
struct asio_signature<void(Args...) &&> : asio_signature<void(Args...)> {};
template <class... Args>
struct asio_signature<void(Args...) noexcept> : asio_signature<void(Args...)> {};
template <class... Args>
struct asio_signature<void(Args...) & noexcept> : asio_signature<void(Args...)> {};
template <class... Args>
struct asio_signature<void(Args...) && noexcept> : asio_signature<void(Args...)> {};

}  // namespace weir::detail

template <class... Args, class Executor>
struct boost::asio::associated_executor<weir::detail::asio_handler<Args...>, Executor> {
  using type = boost::asio::any_io_executor;
  static const type& get(const weir::detail::asio_handler<Args...>& h) noexcept {
    return h.executor(boost::asio::system_executor());
  }
  static const type& get(const weir::detail::asio_handler<Args...>& h,
                         const Executor& of_object) noexcept {
    return h.executor(of_object);
  }
};
