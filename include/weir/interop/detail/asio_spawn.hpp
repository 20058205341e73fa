// SPDX-License-Identifier: MIT
// The machinery of spawn_on.
//
// Everything between Asio code and the loop goes through the queue of the context: the start and a
// cancellation are posted to it, the result is posted to the handler's associated executor. So the
// initiating function, the slot's signal and the handler may be on other threads.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <weir/cancel_reason.hpp>
#include <weir/future.hpp>
#include <weir/interop/detail/asio_service.hpp>
#include <weir/outcome.hpp>
#include <weir/scope.hpp>

namespace weir::detail {

template <class T>
struct spawn_signature {
  using type = void(std::exception_ptr, T);
};
template <>
struct spawn_signature<void> {
  using type = void(std::exception_ptr);
};

/// An operation on its way through the loop. It keeps itself alive from its start to its end.
class asio_spawned_base : public guest_op, public std::enable_shared_from_this<asio_spawned_base> {
 public:
  asio_spawned_base(boost::asio::io_context& context, fiber& f, std::source_location site)
      : context_(context), fiber_(&f), site_(site) {}
  virtual ~asio_spawned_base() = default;

  /// The initiating function, on any thread.
  void post_start() {
    asio_service& service = asio_service::of(context_);
    service.expect_start();
    try {
      boost::asio::post(context_, [self = shared_from_this(), &service] { self->start(service); });
    } catch (...) {
      service.start_arrived();
      throw;
    }
  }
  /// The signal of the handler's slot, on any thread.
  void post_cancel() {
    boost::asio::post(context_, [self = shared_from_this()] { self->cancel(); });
  }

  void ended() noexcept final {
    const auto last = std::move(self_);
    tell(op()->result());
    fiber_ = core_ref();
  }

 protected:
  virtual void tell(outcome_base& result) noexcept = 0;

 private:
  fiber* op() const noexcept { return static_cast<fiber*>(fiber_.get()); }
  void start(asio_service& service) {
    service.start_arrived();
    self_ = shared_from_this();
    try {
      service.start(*op(), *this, site_);
    } catch (...) {  // the system has no more descriptors
      op()->result().set_error(std::current_exception());
      ended();
    }
  }
  // It was started: both are posted to the context, in this order.
  void cancel() {
    if (self_ == nullptr) return;  // it has ended
    asio_service::of(context_).cancel(*op(),
                                      {cancel_kind::user, "cancelled by its completion token"});
  }

  boost::asio::io_context& context_;
  core_ref fiber_;
  std::source_location site_;
  std::shared_ptr<asio_spawned_base> self_;
};

/// Put into the slot of the handler.
class asio_spawn_canceller {
 public:
  explicit asio_spawn_canceller(std::weak_ptr<asio_spawned_base> op) noexcept
      : op_(std::move(op)) {}
  void operator()(boost::asio::cancellation_type) const {
    if (const auto op = op_.lock()) op->post_cancel();
  }

 private:
  std::weak_ptr<asio_spawned_base> op_;
};

template <class T, class Handler>
class asio_spawned final : public asio_spawned_base {
  using executor =
      boost::asio::associated_executor_t<Handler, boost::asio::io_context::executor_type>;

 public:
  asio_spawned(boost::asio::io_context& context, fiber& f, std::source_location site, Handler&& h)
      : asio_spawned_base(context, f, site),
        work_(boost::asio::get_associated_executor(h, context.get_executor())),
        handler_(std::move(h)) {}

 private:
  void tell(outcome_base& result) noexcept override {
    std::exception_ptr error;
    std::optional<stored_t<T>> value;
    try {
      auto& out = static_cast<outcome<T>&>(result);
      if constexpr (std::is_void_v<T>) {
        out.take();
        value.emplace();
      } else {
        value.emplace(out.take());
      }
    } catch (...) {
      error = std::current_exception();
      if constexpr (!std::is_void_v<T>) value.emplace();
    }
    const executor to = work_.get_executor();
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    auto allocator = boost::asio::get_associated_allocator(handler_);
    auto call = [handler = std::move(handler_), work = std::move(work_), slot,
                 error = std::move(error), value = std::move(value)]() mutable {
      work.reset();
      if (slot.is_connected()) slot.clear();
      if constexpr (std::is_void_v<T>) {
        static_cast<void>(value);  // clang would warn of the capture
        std::move(handler)(std::move(error));
      } else {
        std::move(handler)(std::move(error), std::move(*value));
      }
    };
    boost::asio::post(to, boost::asio::bind_allocator(allocator, std::move(call)));
  }

  boost::asio::executor_work_guard<executor> work_;
  Handler handler_;
};

/// What spawn_on hands to its token.
template <class T>
class asio_spawn_initiation {
 public:
  using executor_type = boost::asio::io_context::executor_type;
  asio_spawn_initiation(boost::asio::io_context& context, std::source_location site) noexcept
      : context_(&context), site_(site) {}
  executor_type get_executor() const noexcept { return context_->get_executor(); }

  template <class Handler, class Op>
  void operator()(Handler&& handler, Op&& op) const {
    using spawned = asio_spawned<T, std::decay_t<Handler>>;
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto made = std::make_shared<spawned>(*context_, *scope::make(std::forward<Op>(op)), site_,
                                          std::forward<Handler>(handler));
    if (slot.is_connected())
      slot.template emplace<asio_spawn_canceller>(std::weak_ptr<asio_spawned_base>(made));
    made->post_start();
  }

 private:
  boost::asio::io_context* context_;
  std::source_location site_;
};

}  // namespace weir::detail
