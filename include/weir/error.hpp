// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>

namespace weir {

/// A std::map of strings: <weir/error_metadata.hpp>, which <weir/durable.hpp> includes, has it.
class error_metadata;
namespace detail {
struct terminal_facts;
}

/// Error codes with stable numbers. `std::error_code(e).message()` is the text.
enum class errc {
  nested_run = 1,
  deadlock,
  no_current_fiber,
  wrong_loop,
  scope_closed,
  scope_full,
  never_started,
  already_started,
  already_taken,
  already_waited,
  empty_input,
  empty_job,
  invalid_argument,
  timeout,
  cancelled,
  group,
  abandoned,
  loop_gone,
  would_deadlock,
  overloaded,
  governor_closed,
  governor_full,
  livelock,
  leak,
  always_violated,
  trace_mismatch,
  group_waiting,
  circuit_open,
  restart_limit,
  chaos_fault,
  pool_full,
  pool_closed,
  queue_full,
  queue_closed,
  stream_busy,
  stream_interrupted,
  lagged,
  agent_stopped,
  agent_restarted,
  agent_crashed,
  mailbox_full,
  call_cycle,
  no_current_agent,
  name_taken,
  no_such_child,
  child_running,
  child_restarting,
  already_running,
  not_running,
  terminal,
  outcome_unknown,
  inside_step,
  not_journaled,
  unknown_awakeable,
  unknown_handler,
  id_in_use,
  not_open,
  already_open,
  not_durable,
  journal_locked,
  journal_corrupt,
  journal_failed,
  journal_full,
  wrong_key,
  bad_data,
  too_large,
  closed,
  busy,
  end_of_stream,
  too_long,
  host_not_found,
  tls_failed,
  tls_truncated,
  too_many_redirects,
  read_only,
  no_object,
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

/// Every error of weir: a code of category "weir", or of the system where the system has refused
/// something, and a text that names the object and what to do.
class error : public std::system_error {
 public:
  explicit error(errc code);
  error(errc code, const std::string& what);
  error(std::error_code code, const std::string& what);
  const char* what() const noexcept override;

 private:
  // system_error appends the category's message; weir's texts are already complete.
  std::shared_ptr<const std::string> text_;
};

/// An operation exceeded its time limit.
class timeout_error : public error {
 public:
  timeout_error();
  explicit timeout_error(const std::string& what);
};

/// A permanent failure: a step that throws it is not retried, and a replay throws it again, with
/// the same status and metadata.
///
///     throw weir::terminal_error("the card was declined", 402).with("card", "visa");
class terminal_error : public error {
 public:
  /// `status` is for callers over HTTP; weir does not interpret it.
  explicit terminal_error(const std::string& message, int status = 500);
  terminal_error(const std::string& message, std::shared_ptr<const detail::terminal_facts> facts);

  /// Adds metadata, or replaces it. Copies made before are not changed.
  terminal_error& with(std::string_view key, std::string_view value) &;
  terminal_error&& with(std::string_view key, std::string_view value) &&;

  int status() const noexcept;
  /// Include <weir/error_metadata.hpp> to look at it.
  const error_metadata& metadata() const noexcept;
  /// Null: status 500, no metadata.
  const std::shared_ptr<const detail::terminal_facts>& facts() const noexcept { return facts_; }

 private:
  std::shared_ptr<const detail::terminal_facts> facts_;
};

/// The awaited run was cancelled, but its awaiter was not.
class cancelled_error : public error {
 public:
  explicit cancelled_error(const cancel_reason& reason);
  const cancel_reason& reason() const noexcept;

 private:
  std::shared_ptr<const cancel_reason> reason_;
};

/// Several errors as one, in order; groups nest. Copies share the errors. `what()` names the first
/// and the last one; `describe` shows all.
///
/// Costs: `what()` and `flatten()` are linear in the number of leaves; nesting is limited only by
/// memory, because building, describing, splitting and destroying are all iterative.
class error_group : public error {
 public:
  explicit error_group(std::vector<std::exception_ptr> errors);
  error_group(const error_group&) = default;
  error_group(error_group&&) noexcept = default;
  error_group& operator=(const error_group&) = default;
  error_group& operator=(error_group&&) noexcept = default;
  ~error_group() override = default;

  const std::vector<std::exception_ptr>& errors() const noexcept;
  /// All leaves, depth first.
  std::vector<std::exception_ptr> flatten() const;
  const char* what() const noexcept override;

  /// Splits the leaves by `matches`, called once per leaf; both halves keep the shape of the tree.
  template <class Predicate>
  std::pair<std::optional<error_group>, std::optional<error_group>> split(
      Predicate&& matches) const {
    return split_by(
        [](void* p, const std::exception_ptr& e) {
          return static_cast<bool>((*static_cast<std::remove_reference_t<Predicate>*>(p))(e));
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(matches))));
  }

  /// Only the leaves that can be caught as `E`, in the shape of the tree; empty if there is none.
  template <class E>
  std::optional<error_group> subgroup() const {
    return split([](const std::exception_ptr& e) {
             try {
               std::rethrow_exception(e);
             } catch (const E&) {
               return true;
             } catch (...) {
               return false;
             }
           })
        .first;
  }

 protected:
  /// A group of another kind; `heading` precedes the errors in `what()`.
  error_group(errc code, std::string heading, std::vector<std::exception_ptr> errors);

 private:
  friend std::string describe(const std::exception_ptr& error);
  struct node;
  std::pair<std::optional<error_group>, std::optional<error_group>> split_by(
      bool (*matches)(void*, const std::exception_ptr&), void* predicate) const;

  std::shared_ptr<node> node_;
};

/// Any error as a tree, with where it was thrown, awaited and spawned as far as weir recorded it:
/// user functions and lines, with short names; equal errors of a group are shown once.
std::string describe(const std::exception_ptr& error);

}  // namespace weir

#include <weir/detail/core/error.hpp>

namespace weir {}  // namespace weir

template <>
struct std::is_error_code_enum<weir::errc> : std::true_type {};
