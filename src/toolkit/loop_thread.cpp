// SPDX-License-Identifier: MIT
#include <weir/loop_thread.hpp>

#include <algorithm>
#include <string>
#include <thread>

#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/door.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"
#include "core/served_loop.hpp"
#include "toolkit/option.hpp"

namespace weir {

std::int64_t hardware_threads() noexcept {
  return std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

namespace detail {

namespace {

/// The owning scope's defer for a thread.
task<> end_and_join(std::shared_ptr<served_loop> loop) {
  loop->end();
  co_await quiet_wait_op<served_wait>(std::move(loop));
}

}  // namespace

thread_handle::thread_handle(scope* owner, const weir::name& name, const char* what)
    : owned_by_scope_(owner != nullptr) {
  require_no_run(what, name.view());
  if (owner == nullptr) require_no_loop_to_block(what);
  if (owner != nullptr) owner->require_open(what);
  loop_ =
      served_loop::start(std::string(name.empty() ? "loop_thread" : name.view()), make_idle_root());
  if (owner != nullptr) owner->defer([kept = loop_] { return end_and_join(kept); });
}

thread_handle::~thread_handle() {
  if (loop_ == nullptr || owned_by_scope_) return;
  if (loop::here() != nullptr)
    fatal("loop_thread '" + loop_->name() +
          "', made outside of loops, is destroyed on a loop, which would block it");
  loop_->end();
  loop_->join();
}

loop_ref thread_handle::ref() const noexcept { return loop_->ref(); }
void thread_handle::end() noexcept { loop_->end(); }

}  // namespace detail

runtime::runtime(scope& s, const runtime_options& options) { start(&s, options); }
runtime::runtime(const runtime_options& options) { start(nullptr, options); }

// All are asked to end before the first is joined.
runtime::~runtime() {
  if (outside_)
    for (detail::thread_handle& t : threads_) t.end();
}

void runtime::start(scope* owner, const runtime_options& options) {
  outside_ = owner == nullptr;
  detail::require_positive(options.threads, "runtime", "threads");
  const std::string name(options.name.empty() ? "runtime" : options.name.view());
  for (std::int64_t i = 0; i < options.threads; ++i) {
    const std::string one = name + "-" + std::to_string(i);
    threads_.emplace_back(owner, one, "runtime");
  }
}

loop_ref runtime::at(std::size_t index) const {
  if (index >= threads_.size())
    detail::raise(errc::invalid_argument, "runtime: there is no thread " + std::to_string(index) +
                                              " of " + std::to_string(threads_.size()));
  return threads_[index].ref();
}

loop_ref runtime::any() const {
  detail::require_no_run("runtime");
  loop_ref best = threads_.front().ref();
  std::int64_t fewest = -1;
  for (const detail::thread_handle& t : threads_) {
    const detail::door_ref d = detail::door_table::find(t.ref().index(), t.ref().serial());
    if (d == nullptr) continue;
    const std::int64_t busy = d->remote_children.load(std::memory_order_relaxed);
    if (fewest >= 0 && busy >= fewest) continue;
    fewest = busy;
    best = t.ref();
  }
  return best;
}

}  // namespace weir
