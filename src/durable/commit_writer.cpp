// SPDX-License-Identifier: MIT
#include "durable/commit_writer.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <weir/detail/core/message.hpp>
#include <weir/detail/core/reply.hpp>

#include "core/fork_watch.hpp"
#include "core/loop.hpp"
#include "core/spinner.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

std::exception_ptr commit_to(journal& to, journal_batch& batch) noexcept {
  try {
    to.commit(batch);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

class inline_writer final : public commit_writer {
 public:
  inline_writer(engine_core& engine, journal& to) noexcept : engine_(engine), journal_(to) {}
  void write(std::unique_ptr<journal_batch> batch) override {
    std::exception_ptr error = commit_to(journal_, *batch);
    engine_.commit_done(std::move(batch), std::move(error));
  }

 private:
  engine_core& engine_;
  journal& journal_;
};

/// After a batch with more records the writer sleeps at once: what the next one saves by not waking
/// it up is little for each of its records, and spinning costs a core.
constexpr std::size_t spin_records_max = 32;

/// Shared by the loop and the writer thread; the batch belongs to one of them at any time.
struct handover {
  std::atomic<bool> called{false};  // there is work: checked without the mutex
  std::mutex mutex;
  std::condition_variable work;
  bool waiting = false;
  bool stopping = false;
  std::unique_ptr<journal_batch> batch;
  std::exception_ptr error;
  engine_core* engine;  // null once the writer is being destroyed; used on the loop only
  answer_due due;       // likewise
};

struct commit_message final : message {
  explicit commit_message(std::shared_ptr<handover> h) : shared(std::move(h)) {}
  void deliver(loop&) noexcept override {
    shared->due.settle();
    if (engine_core* engine = shared->engine)
      engine->commit_done(std::move(shared->batch), std::move(shared->error));
    delete this;
  }
  void refuse() noexcept override {
    shared->due.forget();
    delete this;
  }
  std::shared_ptr<handover> shared;
};

class thread_writer final : public commit_writer {
 public:
  thread_writer(engine_core& engine, journal& to, loop& host)
      : host_(host), shared_(std::make_shared<handover>()) {
    shared_->engine = &engine;
    thread_ = std::thread(
        [shared = shared_, &to, door = host.shared_door()] { serve(shared, to, *door); });
  }
  ~thread_writer() override {
    shared_->engine = nullptr;
    if (process_.is_here()) {
      stop();
    } else {
      thread_.detach();  // a forked child does not have the thread
    }
  }
  void write(std::unique_ptr<journal_batch> batch) override {
    shared_->due.expect(host_);
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->batch = std::move(batch);
      shared_->waiting = true;
      shared_->called.store(true, std::memory_order_relaxed);
    }
    shared_->work.notify_one();
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stopping = true;
      shared_->called.store(true, std::memory_order_relaxed);
    }
    shared_->work.notify_one();
    thread_.join();
  }

  static void serve(const std::shared_ptr<handover>& shared, journal& to, door& home) {
    // Sequential steps produce the next batch as soon as this one is acknowledged, which is sooner
    // than sleeping and waking up.
    spinner before_sleep;
    std::unique_lock lock(shared->mutex);
    for (;;) {
      shared->work.wait(lock, [&] { return shared->waiting || shared->stopping; });
      if (!shared->waiting) return;
      shared->waiting = false;
      shared->called.store(shared->stopping, std::memory_order_relaxed);
      lock.unlock();
      const bool small = shared->batch->records() <= spin_records_max;
      shared->error = commit_to(to, *shared->batch);
      home.post(*new commit_message(shared));
      if (small) before_sleep.spin([&] { return shared->called.load(std::memory_order_relaxed); });
      lock.lock();
    }
  }

  loop& host_;
  const process_mark process_;
  std::shared_ptr<handover> shared_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<commit_writer> commit_writer::make(engine_core& engine, journal& to, loop& host) {
  if (host.env().simulated()) return std::make_unique<inline_writer>(engine, to);
  return std::make_unique<thread_writer>(engine, to, host);
}

}  // namespace weir::detail
