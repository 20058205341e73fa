// SPDX-License-Identifier: MIT
#include <weir/stream.hpp>

#include <weir/detail/dump_line.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

task<> run_closing(std::vector<task<>> rest) {
  std::exception_ptr first;
  for (task<>& one : rest) {
    try {
      co_await std::move(one);
    } catch (...) {
      if (first == nullptr) {
        first = std::current_exception();
      } else {
        tell_suppressed(std::current_exception());
      }
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

namespace {

/// Waits for the end of a task that has a strand of its own.
class leaf_wait : public pull_wait {
 public:
  using args = task_leaf*;
  using result = void;
  explicit leaf_wait(args&& leaf) noexcept : leaf_(leaf) {}
  void describe(dump_line& line) const override { leaf_->describe(line); }
  void take() const { rethrow(); }

 private:
  pull poll_stages() override {
    try {
      return leaf_->poll(*this);
    } catch (...) {
      fail(std::current_exception());
      return pull::end;
    }
  }
  unsigned stand_down_stages() noexcept override { return leaf_->stand_down(); }
  pull_turn& own_turn() override { return turn_; }
  task_leaf* leaf_;
  pull_turn turn_;
};

}  // namespace

task<> finish_closing(std::unique_ptr<task_leaf> begun) {
  co_await pending<leaf_wait>(begun.get());
}

void tell_suppressed(const std::exception_ptr& error) noexcept {
  if (loop* here = loop::here()) here->emit("suppressed", "stream", 0, 0, error);
}

void raise_stream_busy() {
  raise(errc::stream_busy,
        "next() while another next() of the same stream is pending; await one at a time, or share "
        "the stream");
}

void fatal_stream_pulled() noexcept { fatal("a stream was destroyed while a next() is pending"); }

void describe_pull(dump_line& line) { line.add("next of a stream: "); }

}  // namespace weir::detail
