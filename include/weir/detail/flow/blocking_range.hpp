// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/blocking_range.hpp>.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <weir/detail/flow/stream_op.hpp>

namespace weir {

namespace detail {

/// Provides a strand for streams that are pulled outside any loop.
class loopless_pull : public composite {
 public:
  bool poll() override { return false; }
  void link() override {}
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;
  void arm_completed(arm_link&) noexcept override {}

 protected:
  loopless_pull() noexcept = default;
  ~loopless_pull() = default;
  /// Makes the calling thread's code part of `strand_` while it lives.
  class inside {
   public:
    explicit inside(loopless_pull& p) noexcept;
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside();

   private:
    strand* outer_;
  };
  /// Throws errc::would_deadlock; ends the program if part of the stream cannot be stopped at once.
  [[noreturn]] static void raise_pending(bool quiet);

 private:
  struct lent final : generator_base {
    void dispose() noexcept override {}
  };
  lent strand_;
};

/// A synchronous stream as an input range.
template <class S>
class stream_range : loopless_pull {
 public:
  explicit stream_range(S stage) : source_(std::in_place, std::move(stage)) {}
  stream_range(stream_range&& other) : loopless_pull(), source_(std::move(other.source_)) {}
  ~stream_range() {
    const inside here(*this);
    source_.reset();
  }

  class iterator {
   public:
    using value_type = value_of<S>;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    iterator() noexcept = default;
    explicit iterator(stream_range& of) : of_(&of) { of_->advance(); }
    value_type& operator*() const noexcept { return *of_->item_; }
    iterator& operator++() {
      of_->advance();
      return *this;
    }
    void operator++(int) { of_->advance(); }
    friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept {
      return it.at_end();
    }

   private:
    bool at_end() const noexcept { return !of_->item_.has_value(); }
    stream_range* of_ = nullptr;
  };
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() {
    const inside here(*this);
    item_.reset();
    for (;;) {
      const pull answer = source_->poll(item_, *this);
      if (answer == pull::pending) raise_pending(source_->withdraw_all() == 0);
      if (answer != pull::again) return;
      current->budget = 256;
    }
  }
  std::optional<weir::pipeline<S>> source_;
  std::optional<value_of<S>> item_;
};

}  // namespace detail
}  // namespace weir
