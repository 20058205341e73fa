// SPDX-License-Identifier: MIT
// A pool beside a model of what its reference page says: random submits, runs, cancellations and
// limits, and after each of them, when nothing is ready any more, both must agree on every job.
//
// Submits happen at whole microseconds, jobs take a little longer than that, limits end half a
// microsecond later: nothing whose order matters happens at one time. Within a time the adversary
// chooses every order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "toolkit/pool_promises.hpp"

namespace pool_promises {

enum class way { tried, submitted, limited, run };
enum class state { refused, waiting, queued, running, ended, removed };

struct modelled_job {
  way how;
  ends end;
  weir::duration length;
  weir::time_point limit;  // of its wait for room
  state now = state::refused;
  weir::time_point over{};  // when it ends, if it runs
};

/// Requires: times only go on.
class pool_model {
 public:
  explicit pool_model(shape size) : size_(size) {}

  int add(const modelled_job& job, weir::time_point t) {
    jobs_.push_back(job);
    modelled_job& mine = jobs_.back();
    const bool room = accepted_ < size_.places() && count(state::waiting) == 0;
    if (closed_) {
      mine.now = state::refused;
    } else if (room) {
      mine.now = state::queued;
      ++accepted_;
    } else {
      mine.now = mine.how == way::tried ? state::refused : state::waiting;
    }
    refill(t);
    return static_cast<int>(jobs_.size()) - 1;
  }
  void cancel(int id, weir::time_point t) {
    modelled_job& job = at(id);
    const bool accepted = job.now == state::queued || job.now == state::running;
    if (job.now != state::waiting && !(job.how == way::run && accepted)) return;
    accepted_ -= accepted ? 1 : 0;
    job.now = job.now == state::running ? state::ended : state::removed;
    refill(t);
  }
  void advance(weir::time_point t) {
    for (;;) {
      modelled_job* next = nullptr;
      for (modelled_job& job : jobs_)
        if (due(job) <= t && (next == nullptr || due(job) < due(*next))) next = &job;
      if (next == nullptr) return;
      const weir::time_point when = due(*next);
      if (next->now == state::running) {
        next->now = state::ended;
        --accepted_;
        if (next->end == ends::badly && next->how != way::run) fail(*next, when);
      } else {
        next->now = state::removed;
      }
      refill(when);
    }
  }
  void close() {
    closed_ = true;
    for (modelled_job& job : jobs_)
      if (job.now == state::waiting) job.now = state::refused;
  }
  /// Gives how many were queued.
  int drop() {
    close();
    int dropped = 0;
    for (modelled_job& job : jobs_) {
      dropped += job.now == state::queued ? 1 : 0;
      if (job.now == state::queued) job.now = state::removed;
      if (job.now == state::running) job.now = state::ended;
    }
    accepted_ = 0;
    return dropped;
  }

  modelled_job& at(int id) { return jobs_.at(static_cast<std::size_t>(id)); }
  int count(state s) const {
    return static_cast<int>(
        std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& job) { return job.now == s; }));
  }
  bool full() const { return accepted_ == size_.places() || count(state::waiting) != 0; }
  int size() const { return static_cast<int>(jobs_.size()); }
  /// Of the errors that came first, for there may be several at one time.
  bool may_be_first_error(int id) { return failed_at_ && at(id).over == *failed_at_; }
  bool failed() const { return failed_at_.has_value(); }

 private:
  static weir::time_point due(const modelled_job& job) {
    if (job.now == state::running) return job.over;
    if (job.now == state::waiting && job.how == way::limited) return job.limit;
    return weir::time_point::max();
  }
  void fail(const modelled_job& job, weir::time_point when) {
    if (!failed_at_) failed_at_ = when;
    (void)job;
  }
  /// First come, first served, at both doors.
  void refill(weir::time_point t) {
    for (modelled_job& job : jobs_) {
      if (job.now != state::waiting || accepted_ == size_.places()) continue;
      job.now = state::queued;
      ++accepted_;
    }
    for (modelled_job& job : jobs_) {
      if (job.now != state::queued || count(state::running) == size_.workers) continue;
      job.now = state::running;
      job.over = t + job.length;
    }
  }

  shape size_;
  int accepted_ = 0;
  bool closed_ = false;
  std::optional<weir::time_point> failed_at_;
  std::deque<modelled_job> jobs_;
};

/// The pool, its users and the model.
class modelled_pool {
 public:
  modelled_pool(shape size, weir::loop_ref other)
      : size_(size), other_(other), model_(size), book_(size.workers, size.places(), most) {}

  task<> live() {
    auto watch = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "job_dropped") dropped_ += static_cast<int>(e.number);
    });
    co_await weir::with_scope([&](scope& s) -> task<> {
      weir::pool p(s, size_.options());
      co_await weir::with_scope([&](scope& users) -> task<> {
        time_ = weir::now();
        while (model_.size() < most) co_await act(p, users);
        co_await end(p, users);
      });
    });
    for (int id = 0; id < model_.size(); ++id)
      always("no function of a job is left", book_.gone(id) == 1);
    book_.check();
  }

 private:
  static constexpr int most = 14;
  struct user {
    std::optional<weir::child<void>> fiber;  // none if it was only tried
    std::exception_ptr error;
    bool answered = false;
  };

  task<> act(weir::pool& p, scope& users) {
    const int what = draw(6);
    if (what == 0 && !users_.empty()) {
      const int id = draw(static_cast<int>(users_.size()));
      auto& fiber = users_.at(static_cast<std::size_t>(id)).fiber;
      if (fiber) {
        model_.cancel(id, time_);
        fiber->cancel();
      }
    } else if (what == 1) {
      co_await pass(1us * draw(4));
    } else {
      submit(p, users);
    }
    co_await agree();
  }

  void submit(weir::pool& p, scope& users) {
    modelled_job job{.how = static_cast<way>(draw(4)),
                     .end = draw(6) == 0 ? ends::badly : ends::well,
                     .length = 1us * (1 + draw(5)) + 10ns,
                     .limit = time_ + 1us * (1 + draw(4)) + 500ns};
    const bool full = model_.full();
    const int id = model_.add(job, time_);
    (void)book_.open();
    users_.emplace_back();
    if (job.how == way::tried) {
      const std::error_code code = p.try_submit(slow_job(book_, id, job.length, job.end));
      always("try_submit is refused if the pool is full or somebody waits",
             full ? code == errc::pool_full : !code);
      return;
    }
    const auto use = [this, &p, id, job, begin = time_] { return wait(p, id, job, begin); };
    users_.back().fiber = draw(3) == 0 ? users.spawn_on(other_, use) : users.spawn(use);
  }

  task<> wait(weir::pool& p, int id, modelled_job job, weir::time_point begin) {
    user& mine = users_.at(static_cast<std::size_t>(id));
    auto made = slow_job(book_, id, job.length, job.end);
    if (job.how == way::submitted) mine.error = co_await error_of_wait(p.submit(std::move(made)));
    if (job.how == way::limited)
      mine.error = co_await error_of_wait(p.submit_for(job.limit - begin, std::move(made)));
    if (job.how == way::run) {
      mine.error = co_await error_of_wait(p.run(std::move(made)));
      book_.caller_left(id, mine.error);
    }
    mine.answered = true;
  }

  task<> pass(weir::duration d) {
    co_await weir::sleep_until(time_ + d);
    time_ += d;
    model_.advance(time_);
  }
  /// Both agree when nothing is ready; time goes on by a microsecond.
  task<> agree() {
    co_await weir::sleep_until(time_ + 300ns);
    model_.advance(time_ + 300ns);
    for (int id = 0; id < model_.size(); ++id) compare(id);
    book_.check();
    co_await pass(1us);
  }
  void compare(int id) {
    const modelled_job& job = model_.at(id);
    const user& mine = users_.at(static_cast<std::size_t>(id));
    const bool begun = job.now == state::running || job.now == state::ended;
    always("a job runs when there is a worker, in its turn", !begun || book_.begun(id) == 1);
    always("no job runs before its turn, or when it was removed", begun || book_.begun(id) == 0);
    always("a job ends in time", (job.now == state::ended) == (book_.ended(id) == 1));
    const bool over = job.now != state::waiting && job.now != state::queued && begun == false;
    always("the function of a removed job is gone", !over || book_.gone(id) == 1);
    if (!mine.fiber) return;
    const bool waits =
        job.now == state::waiting || (job.how == way::run && job.now != state::ended &&
                                      job.now != state::removed && job.now != state::refused);
    always("who waits has no answer before its time", !waits || !mine.fiber->done());
    always("whose wait is over has its answer", waits || mine.fiber->done());
  }

  task<> end(weir::pool& p, scope& users) {
    const bool closes = draw(2) == 0;
    std::optional<std::exception_ptr> result;
    const auto closer = [&]() -> task<> { result = co_await error_of_wait(p.close()); };
    int dropped = 0;
    if (closes) {
      model_.close();
    } else {
      p.cancel();
      dropped = model_.drop();
    }
    auto closing = users.spawn(closer);
    co_await agree();
    while (model_.count(state::queued) + model_.count(state::running) != 0) {
      always("close waits for all that was accepted", !result);
      co_await agree();
    }
    co_await closing;
    always("dropped jobs are counted", dropped_ == dropped);
    always("close throws if a submitted job has failed", model_.failed() == (*result != nullptr));
    always("close throws the first error",
           !model_.failed() || model_.may_be_first_error(failed_job(*result)));
    check_answers();
  }
  void check_answers() {
    for (int id = 0; id < model_.size(); ++id) {
      const user& mine = users_.at(static_cast<std::size_t>(id));
      if (!mine.answered) continue;
      const modelled_job& job = model_.at(id);
      if (job.now == state::refused)
        always("who waited when the pool ended is told",
               error_code(mine.error) == errc::pool_closed);
      if (job.now == state::removed && job.how == way::limited && job.over == weir::time_point{})
        always("who had no more time is told",
               !mine.error || error_code(mine.error) == errc::timeout);
    }
  }

  shape size_;
  weir::loop_ref other_;
  pool_model model_;
  job_book book_;
  weir::time_point time_;
  int dropped_ = 0;
  std::deque<user> users_;
};

inline task<> a_pool_does_what_its_model_does(weir::sim::world& w) {
  modelled_pool both(any_shape(), w.loop("other"));
  co_await both.live();
}

}  // namespace pool_promises
