// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/any_stream.hpp>.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/join.hpp>
#include <weir/stream/source.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

namespace detail {

/// A stream with its type erased.
template <class T>
class erased_stream {
 public:
  erased_stream() = default;
  erased_stream(const erased_stream&) = delete;
  erased_stream& operator=(const erased_stream&) = delete;
  virtual ~erased_stream() = default;
  virtual pull poll(std::optional<T>& out, composite& owner) = 0;
  virtual unsigned withdraw_all() noexcept = 0;
  virtual void shut(closing& c) = 0;
  virtual void describe(dump_line& line) const = 0;
};

template <class S>
class erased_stream_of final : public erased_stream<value_of<S>> {
 public:
  explicit erased_stream_of(S stage) : stream_(std::move(stage)) {}
  pull poll(std::optional<value_of<S>>& out, composite& owner) override {
    return stream_.poll(out, owner);
  }
  unsigned withdraw_all() noexcept override { return stream_.withdraw_all(); }
  void shut(closing& c) override { stream_.shut(c); }
  void describe(dump_line& line) const override { stream_.describe(line); }

 private:
  weir::pipeline<S> stream_;
};

/// Streams of one type, one after the other. Adding one at either end is O(1) and does not nest.
template <class T>
class any_stage {
 public:
  using value_type = T;
  using part = std::unique_ptr<erased_stream<T>>;
  static constexpr bool leaves_pending = true;

  explicit any_stage(part only) { parts_.push_back(std::move(only)); }
  pull poll(std::optional<T>& out, composite& owner) {
    while (!parts_.empty()) {
      const pull answer = parts_.front()->poll(out, owner);
      if (answer != pull::end) return answer;
      parts_.pop_front();
      if (turn_used_up()) return pull::again;
    }
    return pull::end;
  }
  unsigned withdraw_all() noexcept { return parts_.empty() ? 0 : parts_.front()->withdraw_all(); }
  // The streams stay alive: what is added to `c` may refer to them.
  void shut(closing& c) {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->shut(c);
  }
  void describe(dump_line& line) const {
    if (!parts_.empty()) parts_.front()->describe(line);
  }
  void put_in_front(part first) { parts_.push_front(std::move(first)); }
  void put_behind(any_stage&& rest) {
    while (!rest.parts_.empty()) {
      parts_.push_back(std::move(rest.parts_.front()));
      rest.parts_.pop_front();
    }
  }

 private:
  circular_buffer<part> parts_;
};

template <class S>
std::unique_ptr<erased_stream<value_of<S>>> erase(S stage) {
  return std::make_unique<erased_stream_of<S>>(std::move(stage));
}

template <class T>
struct stage_type<any_stream<T>> {
  using type = any_stage<T>;
};

}  // namespace detail
}  // namespace weir
