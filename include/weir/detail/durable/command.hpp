// SPDX-License-Identifier: MIT
// The waits of a durable fiber that its journal answers: steps, calls, awakeables, signals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/future.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/run_seam.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/durable/serde.hpp>
#include <weir/task.hpp>

namespace weir {
struct retry_options;
struct unit;
namespace detail {

class function_body;

/// The body of a step; it runs outside the run, on the loop of the engine.
class step_body {
 public:
  step_body(const step_body&) = delete;
  step_body& operator=(const step_body&) = delete;
  /// One attempt; returns the encoded result.
  virtual task<std::string> attempt() = 0;
  /// Null: it is a coroutine.
  virtual function_body* as_function() noexcept { return nullptr; }

 protected:
  step_body() = default;
  ~step_body() = default;
};

/// A body that is a plain function: it ends where it is called, so it needs no coroutine.
class function_body : public step_body {
 public:
  /// One attempt, at once; returns the encoded result.
  virtual std::string call() = 0;
  task<std::string> attempt() final;
  function_body* as_function() noexcept final { return this; }

 protected:
  ~function_body() = default;
};

/// The parameters of a command; which members are used depends on its kind.
struct command_setup {
  command_setup(run_seam& of, command_kind what, std::source_location where)
      : run(&of), kind(what), site(where) {}
  run_seam* run;
  command_kind kind;
  std::source_location site;
  std::string name;                      // of the step, signal, promise
  std::uint64_t key = 0;                 // of the awakeable
  bool only_look = false;                // at a promise: there may be no answer
  step_body* body = nullptr;             // outlives the wait
  const retry_options* retry = nullptr;  // outlives the wait
  std::unique_ptr<run_request> request;  // of a call
};

/// Waits for the answer to a command. The run owns the list that it is linked to; if a wait for a
/// step or a call is cancelled, it answers `later` and confirms when the journal knows how that
/// ended.
class command_wait : public simple_wait<command_wait, linked_wait> {
 public:
  using args = command_setup;

  explicit command_wait(command_setup&& setup) : setup_(std::move(setup)) {}
  bool try_now() { return setup_.run->poll(*this); }
  void arm() { setup_.run->issue(*this); }
  cancel_result withdraw() noexcept override { return setup_.run->withdraw(*this); }
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return answer_.how != command_answer::kind::value; }

  // For the run.
  const command_setup& setup() const noexcept { return setup_; }
  command_setup& setup() noexcept { return setup_; }
  /// Keeps the answer for the fiber that awaits it. Decodes a value here, so that an undecodable
  /// value never reaches the fiber; throws then.
  void set(const command_answer& answer) {
    if (answer.how == command_answer::kind::value) {
      read(answer.text);
      answer_.how = answer.how;
    } else {
      answer_ = answer;
    }
  }
  /// Wakes the fiber. REQUIRES: set.
  void arrived() { complete(); }
  /// The check for the awaited type.
  virtual answer_check type() const noexcept = 0;
  std::uint64_t command = 0;  // fiber and index, while issued
  std::uint64_t order = 0;    // of issue, among all commands of its run
  core_ref job{};             // the step under way (step_job)
  bool given_up = false;      // cancelled, and waits for the confirmation
  bool answered = false;      // the answer is recorded and will be delivered

 protected:
  ~command_wait() = default;
  virtual void read(std::string_view text) = 0;
  bool nothing() const noexcept { return answer_.how == command_answer::kind::none; }
  void require_value() const {
    if (answer_.how != command_answer::kind::value) raise_answer(answer_);
  }

 private:
  command_setup setup_;
  command_answer answer_;
};

/// Encodes a user's value; everything convertible to std::string_view is encoded as a string, and
/// weir::unit is no value.
template <class In>
std::string encode_given([[maybe_unused]] const In& value) {
  if constexpr (std::is_same_v<In, unit>) {
    return encode<void>();
  } else if constexpr (std::is_convertible_v<const In&, std::string_view> &&
                       !std::is_same_v<In, std::string>) {
    return encode(std::string(std::string_view(value)));
  } else {
    return encode(value);
  }
}

/// Rethrows the current error of `decode`, with what could not be decoded and where.
[[noreturn]] void raise_undecodable(std::string_view what, std::string_view name);
template <class T>
T decode_as(std::string_view text, std::string_view what, std::string_view name) {
  try {
    return decode<T>(text);
  } catch (const error&) {
    raise_undecodable(what, name);
  }
}

template <class T>
void check_answer(std::string_view text) {
  (void)decode<T>(text);
}

/// Returns the decoded answer.
template <class T>
class answer_wait : public command_wait {
 public:
  using result = T;
  using command_wait::command_wait;
  answer_check type() const noexcept override { return &check_answer<T>; }
  T take() {
    require_value();
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 private:
  void read(std::string_view text) override {
    if constexpr (std::is_void_v<T>) {
      decode<void>(text);
    } else {
      value_.emplace(decode<T>(text));
    }
  }
  std::optional<stored_t<T>> value_;
};

/// Returns the decoded answer, if there is one now.
template <class T>
class look_wait : public command_wait {
 public:
  using result = std::optional<stored_t<T>>;
  using command_wait::command_wait;
  answer_check type() const noexcept override { return &check_answer<T>; }
  result take() {
    if (!nothing()) require_value();
    return std::move(value_);
  }

 private:
  void read(std::string_view text) override {
    if constexpr (std::is_void_v<T>) {
      decode<void>(text);
      value_.emplace();
    } else {
      value_.emplace(decode<T>(text));
    }
  }
  result value_;
};

}  // namespace detail
}  // namespace weir
