// SPDX-License-Identifier: MIT
// Boost.Asio support: weir's operations in a program that runs an io_context, and Asio's operations
// as waits. Users need the headers of Boost (1.81) and link weir::io.
#pragma once

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/io_context.hpp>

#include <weir/detail/core/op.hpp>
#include <weir/interop/detail/asio_service.hpp>
#include <weir/interop/detail/asio_spawn.hpp>
#include <weir/interop/detail/asio_wait.hpp>
#include <weir/outcome.hpp>
#include <weir/run.hpp>
#include <weir/scope.hpp>

namespace weir {

/// The type of use_weir.
struct use_weir_t {};

/// A completion token: `co_await stream.async_read_some(buffer, weir::use_weir)`.
///
/// Returns a wait, which initiates the operation when it is awaited: alone, or in race, all,
/// with_timeout, settle. Its value is that of the operation: none, one, or a tuple. A first
/// argument of type error_code is thrown as boost::system::system_error, an exception_ptr is
/// rethrown; asio::as_tuple(use_weir) gives them as values. Cancels: through the operation's
/// cancellation slot, and waits until its handler has run: buffers are not touched afterwards. An
/// operation without one is waited for, and gives its result. Threads: any loop may wait, and the
/// operation may belong to any context; a context that does not host the waiting loop is run on
/// another thread. Errors: errc::abandoned if the context is destroyed first; errc::not_journaled
/// in a durable run, outside of steps; errc::invalid_argument in a simulation.
inline constexpr use_weir_t use_weir{};

/// Runs `op` and the handlers of `context` on this thread until `op` is done, and returns its value
/// or throws its error. Does not stop the context: its other work stays pending.
///
/// Handlers that run meanwhile may use the objects of the loop, as posted functions may. One that
/// throws ends `op`, which is cancelled; then its exception is rethrown. If the program stops the
/// context, `op` is cancelled (kind shutdown), and the context is left stopped; one that is stopped
/// at the beginning is restarted. Errors: errc::nested_run inside a running loop. A second thread
/// that runs the context meanwhile ends the process.
template <detail::operation Op>
auto run_on(boost::asio::io_context& context, Op&& op,
            std::source_location site = std::source_location::current()) {
  using value = detail::result_t<Op>;
  detail::require_no_loop();
  auto* const root = scope::make(std::forward<Op>(op));
  const detail::core_ref keep(root);
  detail::asio_service::of(context).drive(*root, site);
  return static_cast<outcome<value>&>(root->result()).take();
}

/// Starts `op` from Asio code, on any thread, and completes `token` with void(std::exception_ptr)
/// or void(std::exception_ptr, T); a cancelled `op` gives cancelled_error.
///
/// It runs whenever the program runs the context, on one thread; all operations of a context share
/// a loop. It is work of the context: run() does not return while it is pending. Cancels: the
/// token's slot, with any type of cancellation. Destroying the context while it is pending ends the
/// process with the tree.
template <detail::operation Op, class Token>
auto spawn_on(boost::asio::io_context& context, Op&& op, Token&& token,
              std::source_location site = std::source_location::current()) {
  using value = detail::result_t<Op>;
  static_assert(std::is_void_v<value> || std::default_initializable<detail::stored_t<value>>,
                "weir::spawn_on: an error is completed with a default-constructed result");
  return boost::asio::async_initiate<Token, typename detail::spawn_signature<value>::type>(
      detail::asio_spawn_initiation<value>(context, site), token, std::forward<Op>(op));
}

}  // namespace weir

template <class Signature>
class boost::asio::async_result<weir::use_weir_t, Signature> {
 public:
  template <class Initiation, class Token, class... Args>
  static auto initiate(Initiation&& initiation, Token&&, Args&&... args) {
    using wait = weir::detail::asio_wait<typename weir::detail::asio_signature<Signature>::type,
                                         std::decay_t<Initiation>, std::decay_t<Args>...>;
    return weir::detail::pending<wait>(typename wait::args(
        std::in_place, std::forward<Initiation>(initiation), std::forward<Args>(args)...));
  }
};
