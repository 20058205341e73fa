// SPDX-License-Identifier: MIT
// The main of every test program. It adds two rules to each test, so that no test has to remember
// them: a test that hangs is ended with the dump of what it waits for, and a test that leaves a
// loop, scope, fiber or timer behind fails.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <weir/weir.hpp>

namespace {

constexpr int limit_s_default = 60;
// weir::dump answers within about a second per silent loop; a dump that takes longer hangs itself.
constexpr unsigned dump_limit_s = 20;

/// The seconds a test may take: WEIR_TEST_LIMIT_S, for slow machines and debuggers, or the default.
std::chrono::seconds test_limit() {
  const char* text = std::getenv("WEIR_TEST_LIMIT_S");
  if (text == nullptr) return std::chrono::seconds(limit_s_default);
  int limit_s = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, limit_s);
  if (parsed.ec != std::errc() || parsed.ptr != end || limit_s <= 0) {
    std::cerr << "WEIR_TEST_LIMIT_S is '" << text << "'; it must be a number of seconds above 0\n";
    std::exit(2);
  }
  return std::chrono::seconds(limit_s);
}

/// Ends the process when one test runs longer than the limit.
///
/// It is a thread and not an alarm signal, because the dump takes locks and allocates, and because
/// it asks the hanging thread's loop to describe itself.
class watchdog {
 public:
  explicit watchdog(std::chrono::seconds limit) : limit_(limit), thread_([this] { watch(); }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  ~watchdog() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void test_started(std::string name) {
    std::lock_guard lock(mutex_);
    name_ = std::move(name);
    due_ = std::chrono::steady_clock::now() + limit_;
    changed_.notify_one();
  }

  void test_ended() {
    std::lock_guard lock(mutex_);
    name_.clear();
    changed_.notify_one();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (name_.empty()) {
        changed_.wait(lock);
      } else if (std::chrono::steady_clock::now() < due_) {
        changed_.wait_until(lock, due_);
      } else {
        give_up();
      }
    }
  }

  [[noreturn]] void give_up() const {
    std::cerr << "\ntest '" << name_ << "' runs longer than " << limit_.count()
              << " s (WEIR_TEST_LIMIT_S); what it waits for:" << std::endl;
    // If the dump hangs as well, the default action of SIGALRM ends the process.
    alarm(dump_limit_s);
    weir::dump(std::cerr);
    std::cerr << "test '" << name_ << "' was ended by the watchdog" << std::endl;
    std::abort();
  }

  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;  // empty between tests
  std::chrono::steady_clock::time_point due_;
  bool stopped_ = false;
  std::thread thread_;  // last, because it reads all the others from its first moment
};

/// Applies both rules. gtest calls OnTestEnd of the last listener first, so a failure added here is
/// counted before the result of the test is printed.
class house_rules : public testing::EmptyTestEventListener {
 public:
  explicit house_rules(watchdog& dog) : dog_(dog) {}

  void OnTestStart(const testing::TestInfo& test) override {
    dog_.test_started(std::string(test.test_suite_name()) + "." + test.name());
  }

  void OnTestEnd(const testing::TestInfo&) override {
    dog_.test_ended();
    const auto left = weir::live();
    const auto loops = static_cast<long>(left.loops);
    const auto scopes = static_cast<long>(left.scopes);
    const auto fibers = static_cast<long>(left.fibers);
    const auto timers = static_cast<long>(left.timers);
    if (loops != 0 || scopes != 0 || fibers != 0 || timers != 0) {
      ADD_FAILURE() << "the test left " << loops << " loops, " << scopes << " scopes, " << fibers
                    << " fibers and " << timers << " timers behind";
    }
  }

 private:
  watchdog& dog_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // The watchdog is a second thread, so a death test must start its child as a new program: a
  // forked copy of a process with threads may inherit a locked mutex.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  watchdog dog(test_limit());
  testing::UnitTest::GetInstance()->listeners().Append(new house_rules(dog));
  return RUN_ALL_TESTS();
}
