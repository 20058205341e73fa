// SPDX-License-Identifier: MIT
// An io_context as the host of a loop of weir (see detail/io/guest.hpp): a service of the context.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <utility>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/io/guest.hpp>

namespace weir::detail {

/// Makes the loop when its first operation starts, and ends it after the last one. All of it
/// belongs to the thread that runs the context, but for the count of unstarted operations.
///
/// The loop is work of the context, so that `run` does not return while an operation is pending.
/// Each loop watches with a new serial number: handlers of an earlier one, aborted or late, do
/// nothing.
class asio_service final : public boost::asio::execution_context::service, public guest_host {
 public:
  static inline boost::asio::execution_context::id id;

  explicit asio_service(boost::asio::io_context& context)
      : service(context), context_(context), timer_(context), descriptor_(context) {}
  static asio_service& of(boost::asio::io_context& context) {
    return boost::asio::use_service<asio_service>(context);
  }

  boost::asio::io_context& context() noexcept { return context_; }

  /// run_on: drives the context until `f` has ended. Throws what a handler of the program has
  /// thrown meanwhile.
  void drive(fiber& f, std::source_location site) {
    if (context_.stopped()) context_.restart();
    driver call{*this, make_loop(), f};
    ++drivers_;
    call.guest.start(f, nullptr, site);
    turn_soon();  // another thread that runs the context may take it, which ends the process
    call.guest.make_current([](void* c) { static_cast<driver*>(c)->run(); }, &call);
    --drivers_;
    if (guest_->over()) end_loop();
    if (call.stopped) context_.stop();
    if (call.thrown != nullptr) std::rethrow_exception(call.thrown);
  }

  /// Any thread: an operation will be started; or it is, or cannot be.
  void expect_start() noexcept { unstarted_.fetch_add(1, std::memory_order_relaxed); }
  void start_arrived() noexcept { unstarted_.fetch_sub(1, std::memory_order_relaxed); }
  /// spawn_on, on the thread that runs the context.
  void start(fiber& f, guest_op& op, std::source_location site) { make_loop().start(f, &op, site); }
  void cancel(fiber& f, const cancel_reason& why) noexcept { guest_->cancel(f, why); }

  // For the loop.

  void turn_soon() noexcept override {
    if (std::exchange(turn_queued_, true)) return;
    boost::asio::post(context_, [this] {
      turn_queued_ = false;
      if (guest_ == nullptr) return;
      if (guest_->over() && drivers_ == 0) return end_loop();
      guest_->turn();
    });
  }
  void wake_at(time_point when) noexcept override {
    timer_.expires_at(when);
    timer_.async_wait([this, serial = ++timer_serial_](const boost::system::error_code&) {
      if (serial != timer_serial_) return;
      guest_->time_passed();
      turn_soon();  // see drive
    });
  }
  void watch(int descriptor) noexcept override {
    if (!descriptor_.is_open()) descriptor_.assign(descriptor);
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this, serial = serial_](const boost::system::error_code&) {
                             if (serial == serial_) guest_->readable();
                           });
  }
  void loop_is_over() noexcept override {
    if (drivers_ == 0) turn_soon();
  }

 private:
  /// What run_on does while the loop is the current one, so that handlers of the program may use
  /// its objects.
  struct driver {
    asio_service& service;
    guest_loop& guest;
    fiber& op;
    bool stopped = false;
    std::exception_ptr thrown{};

    void run() {
      while (!op.done() || guest.ending()) {
        try {
          if (service.context_.run_one() == 0) context_stopped();
        } catch (...) {
          handler_threw(std::current_exception());
        }
        guest.host_has_run();
      }
      if (thrown == nullptr) return;
      if (op.result().is_error()) guest.emit("suppressed", op.result().error());
      if (op.result().is_value()) guest.emit("value_discarded", nullptr);
    }
    void context_stopped() {
      stopped = true;
      service.context_.restart();
      guest.cancel(op, {cancel_kind::shutdown, "the io_context was stopped"});
    }
    void handler_threw(std::exception_ptr error) {
      if (thrown != nullptr) return guest.emit("suppressed", error);
      thrown = error;
      cancel_reason why(cancel_kind::sibling_failed, "a handler of the io_context has thrown");
      why.cause = std::move(error);
      guest.cancel(op, why);
    }
  };

  guest_loop& make_loop() {
    if (guest_ == nullptr) {
      guest_ = std::make_unique<guest_loop>(*this);
      work_.emplace(context_.get_executor());
    }
    return *guest_;
  }
  void end_loop() noexcept {
    ++serial_;
    ++timer_serial_;
    timer_.cancel();
    if (descriptor_.is_open()) descriptor_.release();
    guest_.reset();
    work_.reset();
  }
  void shutdown() override {
    const std::size_t unstarted = unstarted_.load(std::memory_order_relaxed);
    if (unstarted > 0 || (guest_ != nullptr && !guest_->over()))
      guest_loop::host_destroyed(guest_.get(), unstarted);
    end_loop();  // the handler that would have ended it did not run
  }

  using work_guard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor descriptor_;  // of the loop's reactor, which owns it
  std::unique_ptr<guest_loop> guest_;
  std::optional<work_guard> work_;
  std::atomic<std::size_t> unstarted_{0};
  std::size_t serial_ = 0;
  std::size_t timer_serial_ = 0;
  int drivers_ = 0;  // run_on calls
  bool turn_queued_ = false;
};

}  // namespace weir::detail
