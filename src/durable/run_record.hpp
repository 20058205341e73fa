// SPDX-License-Identifier: MIT
// The records of an engine. docs/journal-format.md lists their payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <weir/detail/core/run_seam.hpp>
#include <weir/duration.hpp>

#include "durable/little_endian.hpp"
#include "durable/record.hpp"

namespace weir::detail {

enum class record_type : std::uint16_t {
  run_start = 1,
  run_end = 2,
  cancel = 3,    // of a run, requested from outside or by its caller
  command = 4,   // the run did something; flags: command_kind
  attempt = 5,   // of a step: it failed and will be tried again
  intent = 6,    // of a step_once: it is about to begin
  answer = 7,    // to a step or a call; flags: command_answer::kind
  fired = 8,     // a timer
  resolved = 9,  // an awakeable; flags: command_answer::kind
  signal = 10,
  deadlock = 11,      // every fiber waited for another one
  hurried = 12,       // a completion was delivered to a run that did not come to rest
  turn = 13,          // an exclusive handler of an object has ended with a value: see turn_record
  object_state = 14,  // all stored values of one key of an object; belongs to no run
  fork = 15,          // a run starts with a part of the history of another one
  restart = 16,       // a run starts in place of another one, with its id
  skip = 17,          // the command that a run is blocked on fails; flags: command_kind
  // 18 is the directory of a frame in a snapshot: the log's.
  compacted = 19,  // at the end of a snapshot: the number of the last run; then states of objects
  mark = 20,       // nothing; begins a segment
  site = 21,       // a number for a source line, which commands refer to; belongs to no run
  blocked = 22,    // the run cannot continue; flags 1: it can again
};

/// Whether the records of a run begin with it.
constexpr bool starts_run(std::uint16_t number) noexcept {
  const auto type = static_cast<record_type>(number);
  return type == record_type::run_start || type == record_type::fork ||
         type == record_type::restart;
}

/// Whether a run ends with it.
constexpr bool ends_run(std::uint16_t number) noexcept {
  return number == static_cast<std::uint16_t>(record_type::run_end) ||
         number == static_cast<std::uint16_t>(record_type::turn);
}

/// Records of other types were written by a later version; what such a run did is unknown.
constexpr bool is_record_type(std::uint16_t number) noexcept {
  return (number >= static_cast<std::uint16_t>(record_type::run_start) &&
          number <= static_cast<std::uint16_t>(record_type::skip)) ||
         (number >= static_cast<std::uint16_t>(record_type::compacted) &&
          number <= static_cast<std::uint16_t>(record_type::blocked));
}

/// Whether it delivers something to the run; such records are replayed in order.
constexpr bool is_completion(record_type type) noexcept {
  switch (type) {
    case record_type::cancel:
    case record_type::answer:
    case record_type::fired:
    case record_type::resolved:
    case record_type::signal:
    case record_type::deadlock:
      return true;
    default:
      return false;
  }
}

/// Whether what the run does next depends on it; `flags` are those of the record.
constexpr bool steers(record_type type, std::uint16_t flags) noexcept {
  if (type == record_type::command)
    return (flags & 0xffU) == static_cast<unsigned>(command_kind::patch);
  return is_completion(type) || type == record_type::hurried || type == record_type::skip;
}

/// A growing array whose first N elements need no allocation.
template <class T, std::size_t N>
class short_vector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void append(const T* from, std::size_t n) {
    if (n == 0) return;
    if (size_ + n > N) {
      if (size_ <= N) many_.assign(few_, few_ + size_);
      many_.insert(many_.end(), from, from + n);
    } else {
      std::memcpy(few_ + size_, from, n * sizeof(T));
    }
    size_ += n;
  }
  std::size_t size() const noexcept { return size_; }
  std::span<const T> view() const noexcept { return {size_ > N ? many_.data() : few_, size_}; }

 private:
  T few_[N];  // all of them while they fit
  std::vector<T> many_;
  std::size_t size_ = 0;
};

/// Writes the parts of a payload in sequence: numbers little-endian, texts with their length. What
/// comes from a user's values or errors is secret: a journal with a key encrypts it. Names, ids,
/// keys, times, codes and lengths stay readable.
class payload_writer {
 public:
  payload_writer& number(std::uint64_t n) { return put(n); }
  payload_writer& small(std::uint32_t n) { return put(n); }
  payload_writer& time(wall_time t) {
    return number(static_cast<std::uint64_t>(t.time_since_epoch().count()));
  }
  /// A text that stays readable.
  payload_writer& name(std::string_view s) {
    small(static_cast<std::uint32_t>(s.size()));
    bytes_.append(s.data(), s.size());
    return *this;
  }
  /// A text that is secret, except for its length: an input, a value, a message.
  payload_writer& secret(std::string_view s) {
    small(static_cast<std::uint32_t>(s.size()));
    hide(s.size());
    bytes_.append(s.data(), s.size());
    return *this;
  }
  /// A digest of a secret text; 0, which stands for none, is no secret.
  payload_writer& secret_number(std::uint64_t n) {
    if (n != 0) hide(sizeof n);
    return number(n);
  }
  payload_view view() const noexcept {
    const std::span<const char> all = bytes_.view();
    return {{all.data(), all.size()}, secrets_.view()};
  }

 private:
  static constexpr std::size_t usual_bytes = 240;
  static constexpr std::size_t usual_secrets = 2;

  template <class T>
  payload_writer& put(T n) {
    n = little_endian(n);
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof n);
    return *this;
  }
  /// The next bytes are secret.
  void hide(std::size_t bytes) {
    if (bytes == 0) return;
    const secret_part part{static_cast<std::uint32_t>(bytes_.size()),
                           static_cast<std::uint32_t>(bytes)};
    secrets_.append(&part, 1);
  }

  short_vector<char, usual_bytes> bytes_;
  short_vector<secret_part, usual_secrets> secrets_;
};

/// Reads such a payload; one that is too short is errc::journal_corrupt.
class payload_reader {
 public:
  explicit payload_reader(std::string_view bytes) noexcept : rest_(bytes) {}
  std::uint64_t number();
  std::uint32_t small();
  wall_time time();
  std::string_view text();
  std::size_t left() const noexcept { return rest_.size(); }
  bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view take(std::size_t n);
  std::string_view rest_;
};

/// What the flags of a start say.
inline handler_kind kind_of_start(std::uint16_t flags) noexcept {
  return static_cast<handler_kind>(flags & 0xffU);
}

/// The idempotency key of a run, together with the key of its object, if it has one.
std::string scoped_idempotency(std::string_view object_key, std::string_view key);

/// The parts of run_start.
struct start_record {
  wall_time at{};
  wall_time begins{};  // later than `at` if it is delayed
  std::uint64_t seed = 0;
  std::uint32_t version = 1;
  std::uint64_t parent = 0;  // the run that waits for it, 0: none
  std::uint64_t parent_command = 0;
  std::string_view id;
  std::string_view handler;
  std::string_view key;
  std::string_view idempotency;
  std::string_view input;
  handler_kind kind = handler_kind::plain;  // not in the payload: the flags of run_start

  /// Runs of different keys of an object do not attach to each other.
  std::string scoped_idempotency() const;
  void write(payload_writer& out) const;
  static start_record read(payload_reader& in);
  static start_record read(std::string_view payload, std::uint16_t flags = 0);
};

/// What follows the parts of run_start in a fork.
struct fork_record {
  std::uint64_t origin = 0;    // the run that it continues
  std::uint32_t commands = 0;  // of the handler's own fiber, that are kept
  std::uint64_t records = 0;   // the first ones of the run: copies; it starts with the last of them

  void write(payload_writer& out) const;
  static fork_record read(payload_reader& in);
};

/// What follows the parts of run_start in a restart.
struct restart_record {
  std::uint64_t replaced = 0;  // the run of its earlier life, of which nothing is left
  std::uint32_t life = 2;

  void write(payload_writer& out) const;
  static restart_record read(payload_reader& in);
};

/// The parts of command.
struct command_record {
  std::string_view name;
  std::uint64_t digest = 0;  // of the input
  std::uint64_t number = 0;  // a timer: when; a send that was refused: the code of its error
  std::string_view value{};  // of `stored`: what was read; empty: there was no value
  std::uint32_t site = 0;    // where it was issued; 0: unknown, as in older journals

  void write(payload_writer& out) const;
  static command_record read(std::string_view payload);
};

/// The parts of site.
struct site_record {
  std::uint32_t number = 0;
  std::uint32_t line = 0;
  std::string_view file;  // without its directories

  std::string text() const;
  void write(payload_writer& out) const;
  static site_record read(std::string_view payload);
};

/// The parts of blocked.
struct blocked_record {
  static constexpr std::uint16_t blocks = 0;  // the flags
  static constexpr std::uint16_t ends = 1;    // the run continues
  static constexpr bool is_block(std::uint16_t flags) noexcept { return (flags & 0xffU) == blocks; }

  wall_time at{};
  std::string_view why;  // empty if it continues

  void write(payload_writer& out) const;
  static blocked_record read(std::string_view payload);
};

/// The parts of compacted. Runs up to `last_run` that do not start in the journal were forgotten,
/// and so were those in `forgotten`, which start in records that are needed for other runs.
struct compacted_record {
  std::uint64_t last_run = 0;
  std::vector<std::uint64_t> forgotten;

  void write(payload_writer& out) const;
  static compacted_record read(std::string_view payload);
};

/// The parts of answer, resolved and run_end, and the first ones of turn: when, the code of an
/// error, and a value or message; then the facts of a terminal error, if it has any.
struct answer_record {
  wall_time at{};
  errc code = errc::terminal;
  std::string_view text;
  std::shared_ptr<const terminal_facts> facts{};

  void write(payload_writer& out) const;
  static answer_record read(payload_reader& in);
  static answer_record read(std::string_view payload);
};

/// The parts of skip: the command as the code has it, and the error that answers it.
struct skip_record {
  static constexpr std::uint64_t no_answer = ~std::uint64_t{0};

  std::uint64_t replaces = no_answer;  // the number of the completion that the error replaces
  std::uint64_t digest = 0;
  std::string_view name;
  answer_record error;

  void write(payload_writer& out) const;
  static skip_record read(std::string_view payload);
};

/// What the flags of a record say.
inline command_answer::kind answer_kind(std::uint16_t flags) noexcept {
  return static_cast<command_answer::kind>(flags & 0xffU);
}
inline command_kind kind_of_command(std::uint16_t flags) noexcept {
  return static_cast<command_kind>(flags & 0xffU);
}

/// Something that happened to a run, as recorded in its journal.
struct completion {
  record_type type;
  std::uint64_t command = 0;
  wall_time at{};
  std::string name;  // of a signal
  command_answer answer;

  void write(payload_writer& out) const;
  static completion read(const record_head& head, std::string_view payload);
};

/// Writes the payload of a record of a run again, as another run has it.
void copy_payload(const record_head& head, std::string_view payload, payload_writer& out);

/// The code in the record of a cancellation that came before the run had begun.
inline constexpr errc cancelled_early = errc::cancelled;

/// The number of the handler's own fiber.
inline constexpr std::uint32_t root_fiber = 1;

/// Fiber and index of a command as one number.
constexpr std::uint64_t command_key(std::uint32_t fiber, std::uint32_t index) noexcept {
  return static_cast<std::uint64_t>(fiber) << 32 | index;
}
constexpr std::uint32_t fiber_of_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key >> 32);
}
constexpr std::uint32_t index_of_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key);
}

/// 64 bits of a text (FNV-1a), to detect that it has changed.
std::uint64_t digest_of(std::string_view text) noexcept;

}  // namespace weir::detail
