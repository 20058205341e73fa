// SPDX-License-Identifier: MIT
// What a durable run can wait for: awakeables and signals, completed from outside, and its own
// promises.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/task.hpp>

namespace weir {

/// A promise that is completed from outside the run: hand out `id()`; the receiver calls
/// `engine::resolve(id, value)` or `engine::reject(id, message)`.
///
/// Ensures: the id is the same when the run is replayed; the first answer counts, even if it
/// arrives before the wait. A rejection raises weir::terminal_error. Requires: created and awaited
/// by fibers of a durable run, outside of steps; elsewhere errc::not_durable, errc::inside_step.
template <class T>
class awakeable {
 public:
  explicit awakeable(std::string_view name,
                     std::source_location site = std::source_location::current())
      : run_(&detail::require_run("awakeable")),
        made_(run_->make_awakeable(name, &detail::check_answer<T>, site)),
        name_(name) {}

  const std::string& id() const noexcept { return made_.id; }
  /// May be awaited any number of times.
  [[nodiscard]] detail::pending<detail::answer_wait<T>> wait(
      std::source_location site = std::source_location::current()) const {
    detail::command_setup setup(detail::require_run_of_awakeable(run_),
                                detail::command_kind::awakeable, site);
    setup.name = name_;
    setup.key = made_.key;
    return detail::pending<detail::answer_wait<T>>(std::move(setup));
  }

 private:
  detail::run_seam* run_;
  detail::run_seam::awakeable_made made_;
  std::string name_;
};

/// Receives the values sent to a run by `engine::signal(run_id, name, value)`. Signals of one name
/// are kept in order of arrival, and each wait takes one.
template <class T>
class signal {
 public:
  explicit signal(std::string_view name) : name_(name) { (void)detail::require_run("signal"); }

  [[nodiscard]] detail::pending<detail::answer_wait<T>> wait(
      std::source_location site = std::source_location::current()) const {
    detail::command_setup setup(detail::require_run("signal"), detail::command_kind::signal, site);
    setup.name = name_;
    return detail::pending<detail::answer_wait<T>>(std::move(setup));
  }

 private:
  std::string name_;
};

/// A named value that one fiber of the run sets once and any of its fibers may wait for.
template <class T>
class promise {
 public:
  explicit promise(std::string_view name) : name_(name) { (void)detail::require_run("promise"); }

  [[nodiscard]] detail::pending<detail::answer_wait<T>> wait(
      std::source_location site = std::source_location::current()) const {
    detail::command_setup setup(detail::require_run("promise"), detail::command_kind::promise,
                                site);
    setup.name = name_;
    return detail::pending<detail::answer_wait<T>>(std::move(setup));
  }
  /// The value, if it is set. A rejected promise throws its weir::terminal_error.
  std::optional<detail::stored_t<T>> peek() const {
    const detail::command_answer* found = detail::require_run("promise").peek_promise(name_);
    if (found == nullptr) return std::nullopt;
    if (found->how != detail::command_answer::kind::value) detail::raise_answer(*found);
    if constexpr (std::is_void_v<T>) {
      return detail::void_value{};
    } else {
      return detail::decode<T>(found->text);
    }
  }
  /// The same on every engine: also where the answer comes from another process.
  task<std::optional<detail::stored_t<T>>> poll(
      std::source_location site = std::source_location::current()) const {
    (void)detail::require_run("promise");
    return polled(name_, site);
  }
  /// True if this call settled the promise.
  template <class U = T>
  task<bool> resolve(const U& value,
                     std::source_location site = std::source_location::current()) const {
    return settle(name_,
                  {detail::command_answer::kind::value, errc::terminal,
                   detail::encode(static_cast<const T&>(value))},
                  site);
  }
  template <class U = T>
    requires std::is_void_v<U>
  task<bool> resolve(std::source_location site = std::source_location::current()) const {
    return settle(
        name_, {detail::command_answer::kind::value, errc::terminal, detail::encode<void>()}, site);
  }
  task<bool> reject(std::string_view message,
                    std::source_location site = std::source_location::current()) const {
    return settle(
        name_, {detail::command_answer::kind::error, errc::terminal, std::string(message)}, site);
  }

 private:
  static task<std::optional<detail::stored_t<T>>> polled(std::string name,
                                                         std::source_location site) {
    detail::command_setup setup(detail::require_run("promise"), detail::command_kind::promise,
                                site);
    setup.name = std::move(name);
    setup.only_look = true;
    co_return co_await detail::pending<detail::look_wait<T>>(std::move(setup));
  }
  static task<bool> settle(std::string name, detail::command_answer answer,
                           std::source_location site) {
    co_return detail::require_run("promise").settle_promise(name, std::move(answer), site);
  }
  std::string name_;
};

}  // namespace weir
