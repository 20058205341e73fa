// SPDX-License-Identifier: MIT
#include <weir/stream/stream.hpp>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

task<> wait_until_settled(core_ref child) { co_await pending<settled_wait>(std::move(child)); }

void join_later(closing& c, core_ref rest) {
  if (rest.get() != nullptr) c.later(wait_until_settled(std::move(rest)));
}

namespace {

struct task_strand final : generator_base, frame_allocated {
  void dispose() noexcept override { delete this; }
};

}  // namespace

task_leaf::task_leaf(task<> t) : self_(new task_strand) { self_->adopt(frame_of(t.release())); }

std::unique_ptr<task_leaf> task_leaf::shielded(task<> t) {
  auto leaf = std::make_unique<task_leaf>(std::move(t));
  leaf->self_->make_shielded();
  return leaf;
}

task<> run_closing(std::vector<task<>> rest) {
  std::exception_ptr first;
  for (task<>& one : rest) {
    try {
      co_await std::move(one);
    } catch (...) {
      if (first == nullptr) {
        first = std::current_exception();
      } else {
        emit_suppressed(std::current_exception());
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
  unsigned stand_down_stages() noexcept override { return leaf_->withdraw_all(); }
  turn_slot& own_turn() override { return turn_; }
  task_leaf* leaf_;
  turn_slot turn_;
};

}  // namespace

task<> finish_closing(std::unique_ptr<task_leaf> begun) {
  co_await pending<leaf_wait>(begun.get());
}

void emit_suppressed(const std::exception_ptr& error) noexcept {
  if (loop* here = loop::here()) here->emit("suppressed", "stream", 0, 0, error);
}

void raise_stream_busy() {
  raise(errc::stream_busy,
        "next() while another next() of the same stream is pending; await one at a time, or share "
        "the stream");
}

void fatal_stream_pulled() noexcept { fatal("a stream was destroyed while a next() is pending"); }

void add_words(dump_line& line, const char* words) { line.add(words); }

void describe_pull(dump_line& line) { line.add("next of a stream: "); }

}  // namespace weir::detail
