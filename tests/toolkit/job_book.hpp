// SPDX-License-Identifier: MIT
// What is known of jobs from outside: how often each has begun, ended and been destroyed, and
// whether its caller was gone by then. For simulations (single thread) and for storms of threads.
#pragma once

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir_test {

/// The error of a job that was told to fail.
struct job_failed : std::runtime_error {
  explicit job_failed(int number)
      : std::runtime_error("job " + std::to_string(number) + " failed"), id(number) {}
  int id;
};

/// Jobs are numbered from 0 in the order in which they are opened.
///
/// Promises are checked where they may break, also in destructors; the first that does not hold is
/// kept, and check() raises it. Threads: any.
class job_book {
 public:
  /// `workers` may run at once, `places` be accepted and not ended; `most` jobs are there in all.
  job_book(int workers, int places, int most)
      : workers_(workers), limit_(places), pages_(static_cast<std::size_t>(most)) {}

  int open() { return next_++; }
  int opened() const { return next_; }
  /// Those of which there was a function.
  int made() const { return made_; }

  /// Its submit begins: whatever was accepted before this begins before it.
  void arrive(int id) { at(id).arrived = ++clock_; }
  /// The pool has said yes.
  void accept(int id) {
    at(id).accepted = ++clock_;
    must(++accepted_ - ended_ <= limit_, "no more jobs are accepted than there are places");
  }
  /// It was asked to go away, so that others may overtake it.
  void depart(int id) { at(id).departed = true; }
  /// Whoever waited for the job goes on: what the job refers to may be gone.
  void caller_left(int id) {
    must(at(id).begun == at(id).ended, "a caller goes on when its job has ended");
    must(at(id).gone == 1, "a caller goes on when the function of its job is destroyed");
    at(id).caller_left = true;
  }

  /// The same for one that was told an error. What a pool has refused or dropped may be destroyed a
  /// little later, by whoever did that.
  void caller_left(int id, const std::exception_ptr& error) {
    if (!error || begun(id) != 0) caller_left(id);
  }

  void must(bool holds, const char* what) noexcept {
    const char* nothing = nullptr;
    if (!holds) wrong_.compare_exchange_strong(nothing, what);
  }
  /// At the end, if nothing was cancelled: what was accepted has run, and nothing else.
  void must_balance() {
    for (int id = 0; id < opened(); ++id) {
      const int wanted = at(id).accepted != 0 ? 1 : 0;
      must(begun(id) == wanted && ended(id) == wanted, "what was accepted has run, nothing else");
      must(gone(id) == 1, "nothing is left of any job");
    }
  }
  const char* wrong() const { return wrong_; }
  /// Raises the first promise that did not hold.
  void check() const {
    const char* what = wrong_;
    weir::sim::always(what == nullptr ? "" : what, what == nullptr);
  }

  int begun(int id) { return at(id).begun; }
  int ended(int id) { return at(id).ended; }
  int gone(int id) { return at(id).gone; }
  int begun() { return sum(&page::begun); }
  int ended() { return sum(&page::ended); }
  int gone() { return sum(&page::gone); }
  int running() const { return running_; }

  /// Is part of the function of a job.
  class token {
   public:
    token(job_book& book, int id) : book_(&book), id_(id) { ++book.made_; }
    token(token&& other) noexcept : book_(std::exchange(other.book_, nullptr)), id_(other.id_) {}
    token& operator=(token&&) = delete;
    ~token() {
      if (book_ != nullptr) book_->destroyed(id_);
    }
    job_book& book() const { return *book_; }
    int id() const { return id_; }

   private:
    job_book* book_;
    int id_;
  };

  /// Exists while the job runs.
  class visit {
   public:
    explicit visit(const token& t) : book_(t.book()), id_(t.id()) { book_.begin(id_); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { book_.end(id_); }

   private:
    job_book& book_;
    int id_;
  };

 private:
  struct page {
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    std::atomic<int> gone{0};
    std::atomic<bool> caller_left{false};
    std::atomic<bool> departed{false};
    std::atomic<int> arrived{0};   // when; 0 is never
    std::atomic<int> accepted{0};  // when; 0 is never
  };

  page& at(int id) { return pages_.at(static_cast<std::size_t>(id)); }
  int sum(std::atomic<int> page::* what) {
    int all = 0;
    for (page& p : pages_) all += p.*what;
    return all;
  }
  void begin(int id) {
    must(++at(id).begun == 1, "a job begins at most once");
    must(++running_ <= workers_, "at most as many jobs run as there are workers");
    must(!at(id).caller_left, "no job begins when its caller is gone");
    must(at(id).gone == 0, "no job begins that was destroyed");
    // What the other workers have taken need not have begun.
    int before = 0;
    for (int other = 0; other < opened() && at(id).arrived != 0; ++other) {
      const int accepted = at(other).accepted;
      const bool earlier = accepted != 0 && accepted < at(id).arrived && !at(other).departed;
      before += earlier && at(other).begun == 0 ? 1 : 0;
    }
    must(before < workers_, "jobs begin in the order in which they were accepted");
  }
  void end(int id) noexcept {
    --running_;
    must(++at(id).ended == 1, "a job ends once");
    ++ended_;
    must(!at(id).caller_left, "no job ends when its caller is gone");
  }
  void destroyed(int id) noexcept {
    must(++at(id).gone == 1, "the function of a job is destroyed once");
    must(at(id).begun == at(id).ended, "the function of a job is destroyed when it does not run");
    must(!at(id).caller_left, "no function of a job is destroyed when its caller is gone");
  }

  const int workers_;
  const int limit_;
  std::atomic<int> next_{0};
  std::atomic<int> made_{0};
  std::atomic<int> clock_{0};
  std::atomic<int> accepted_{0};
  std::atomic<int> ended_{0};
  std::atomic<int> running_{0};
  std::atomic<const char*> wrong_{nullptr};
  std::vector<page> pages_;
};

/// How a job ends.
enum class ends { well, badly };

/// A job that does not wait; its value is its number.
inline auto plain_job(job_book& book, int id, ends how = ends::well) {
  return [t = job_book::token(book, id), how] {
    const job_book::visit here(t);
    if (how == ends::badly) throw job_failed(t.id());
    return t.id();
  };
}

/// A job that sleeps in between, or only yields if `d` is zero.
inline auto slow_job(job_book& book, int id, weir::duration d, ends how = ends::well) {
  return [t = job_book::token(book, id), d, how]() -> weir::task<int> {
    const job_book::visit here(t);
    co_await weir::sleep(d);
    if (how == ends::badly) throw job_failed(t.id());
    co_return t.id();
  };
}

/// Makes a blocking call and accounts for it however it ends. A caller that is cancelled while the
/// call runs has its value and is unwound at the yield.
inline weir::task<> one_blocking_call(job_book& b) {
  const int id = b.open();
  bool answered = false;
  const auto left = weir::scope_exit([&] {
    b.caller_left(id);
    b.must(answered == (b.ended(id) == 1), "the value of a call that was made is delivered");
  });
  auto fn = plain_job(b, id);
  const int value = co_await weir::blocking(std::move(fn));
  b.must(value == id, "a call has the value of its own function");
  answered = true;
  co_await weir::yield();
}

/// The number of a job_failed, or -1 for anything else.
inline int failed_job(const std::exception_ptr& error) {
  if (!error) return -1;
  try {
    std::rethrow_exception(error);
  } catch (const job_failed& e) {
    return e.id;
  } catch (...) {
    return -1;
  }
}

/// The code of an error of weir, or an empty one.
inline std::error_code error_code(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::system_error& e) {
    return e.code();
  } catch (...) {
    return {};
  }
}

}  // namespace weir_test
