// SPDX-License-Identifier: MIT
// Runs spread over processes: process j of n makes the runs j, j + n, j + 2n, ...
//
// They share one page of counters; each process sends its messages and its `sometimes` names
// through a pipe when it ends. A process stops once a run below its next one has failed, so the
// lowest failing run is made for any number of processes.
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <list>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/explore.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t max_jobs = 256;
constexpr int look_every_ms = 200;

[[noreturn]] void raise_system(const char* call) {
  throw std::system_error(errno, std::generic_category(),
                          std::string("sim::explore with .jobs: ") + call);
}

/// Written by all processes.
struct shared_counters {
  std::atomic<std::int64_t> lowest;  // failing run
  std::atomic<std::int64_t> runs;
  std::atomic<std::int64_t> steps;
  std::atomic<std::int64_t> current[max_jobs];  // the run in progress in each process
};

class shared_page {
 public:
  shared_page() {
    void* memory = ::mmap(nullptr, sizeof(shared_counters), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) raise_system("mmap");
    counters_ = new (memory) shared_counters{};
  }
  shared_page(const shared_page&) = delete;
  shared_page& operator=(const shared_page&) = delete;
  ~shared_page() { ::munmap(counters_, sizeof(shared_counters)); }
  shared_counters* operator->() const noexcept { return counters_; }

 private:
  shared_counters* counters_;
};

/// Lowers `value` to `to` if that is less.
void lower(std::atomic<std::int64_t>& value, std::int64_t to) noexcept {
  std::int64_t seen = value.load();
  while (to < seen && !value.compare_exchange_weak(seen, to)) {
  }
}

void write_all(int to, const std::string& text) noexcept {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(to, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

/// One finding: a letter, a length, the text (which may contain line breaks).
std::string packed(char kind, const std::string& text) {
  return kind + std::to_string(text.size()) + ":" + text;
}

/// The body of a process: makes its runs, then reports its findings.
[[noreturn]] void work_and_exit(explorer& work, const shared_page& shared, std::int64_t job,
                                std::int64_t jobs, std::int64_t runs, int out) noexcept {
  std::string found;
  sometimes_map sometimes;
  for (std::int64_t i = job; i < runs && i < shared->lowest.load(); i += jobs) {
    shared->current[job].store(i);
    const run_result r = work.try_run(i);
    shared->runs.fetch_add(1);
    shared->steps.fetch_add(r.steps);
    for (const auto& [name, held] : r.sometimes) sometimes[name] |= held;
    if (!r.failed) continue;
    lower(shared->lowest, i);
    found += packed('m', std::to_string(i) + " " + r.message);
    break;
  }
  for (const auto& [name, held] : sometimes) found += packed(held ? 'y' : 'n', name);
  write_all(out, found);
  shared->current[job].store(-1);
  std::fflush(nullptr);
  ::_exit(0);
}

/// A process and the pipe for its findings. The destructor kills and reaps a process that has not
/// ended.
class child {
 public:
  child(explorer& work, const shared_page& shared, std::int64_t job, std::int64_t jobs,
        std::int64_t runs) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) raise_system("pipe");
    process_ = ::fork();
    if (process_ == 0) work_and_exit(work, shared, job, jobs, runs, ends[1]);
    ::close(ends[1]);
    from_ = ends[0];
    if (process_ < 0) {
      ::close(from_);
      raise_system("fork");
    }
    ::fcntl(from_, F_SETFL, O_NONBLOCK);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (!ended_) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::close(from_);
  }

  int pipe() const noexcept { return from_; }
  bool ended() const noexcept { return ended_; }
  int status() const noexcept { return status_; }
  const std::string& said() const noexcept { return said_; }

  /// Reads what is available and checks whether the process has ended. The end of the pipe does not
  /// count: a process started by the program may keep it open.
  void look() {
    if (ended_) return;
    const pid_t gone = ::waitpid(process_, &status_, WNOHANG);
    char buffer[4096];
    for (;;) {
      const ssize_t n = ::read(from_, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      said_.append(buffer, static_cast<std::size_t>(n));
    }
    ended_ = gone == process_;
  }

 private:
  pid_t process_ = -1;
  int from_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string said_;
};

std::string how_it_died(int status) {
  if (WIFSIGNALED(status))
    return "the process of this run was killed by signal " + std::to_string(WTERMSIG(status)) +
           " (" + ::strsignal(WTERMSIG(status)) + ")";
  return "the process of this run ended with status " + std::to_string(WEXITSTATUS(status));
}

/// Parses the findings of one process. If it was killed while writing, the incomplete rest is
/// ignored.
void understand(const std::string& said, jobs_findings& all, std::int64_t lowest) {
  for (std::size_t at = 0; at < said.size();) {
    const char kind = said[at];
    std::size_t length = 0;
    const char* const end = said.data() + said.size();
    const auto [colon, problem] = std::from_chars(said.data() + at + 1, end, length);
    if (problem != std::errc() || colon == end || *colon != ':') return;
    const auto begin = static_cast<std::size_t>(colon - said.data()) + 1;
    if (said.size() - begin < length) return;
    const std::string text = said.substr(begin, length);
    at = begin + length;
    if (kind != 'm') {
      all.sometimes[text] |= kind == 'y';
    } else if (text.rfind(std::to_string(lowest) + " ", 0) == 0) {
      all.message = text.substr(text.find(' ') + 1);
      all.died = false;
    }
  }
}

/// Waits for all processes to end; a process that died is a finding, too.
void gather(std::list<child>& children, const shared_page& shared, jobs_findings& all,
            std::int64_t runs) {
  progress line(runs);
  std::vector<bool> counted(children.size(), false);
  for (std::size_t left = children.size(); left > 0;) {
    std::vector<pollfd> open;
    for (const child& c : children)
      if (!c.ended()) open.push_back({c.pipe(), POLLIN, 0});
    ::poll(open.data(), open.size(), look_every_ms);
    line.show(shared->runs.load(), shared->lowest.load() < runs ? 1 : 0);
    std::size_t j = 0;
    for (child& c : children) {
      const std::size_t job = j++;
      c.look();
      if (!c.ended() || counted[job]) continue;
      counted[job] = true;
      --left;
      const std::int64_t at = shared->current[job].load();
      if (at < 0) continue;
      if (at < shared->lowest.load()) {
        all.died = true;
        all.message = how_it_died(c.status());
      }
      lower(shared->lowest, at);
    }
  }
}

}  // namespace

jobs_findings run_jobs(explorer& work, std::int64_t jobs, std::int64_t runs) {
  if (jobs > max_jobs)
    raise(errc::invalid_argument, "sim::explore: jobs is " + std::to_string(jobs) +
                                      "; give at most " + std::to_string(max_jobs));
  const shared_page shared;
  shared->lowest.store(runs);
  std::fflush(nullptr);
  std::list<child> children;
  for (std::int64_t j = 0; j < jobs; ++j) {
    shared->current[j].store(j < runs ? j : -1);
    children.emplace_back(work, shared, j, jobs, runs);
  }
  jobs_findings all;
  gather(children, shared, all, runs);
  const std::int64_t lowest = shared->lowest.load();
  for (const child& c : children) understand(c.said(), all, lowest);
  all.runs = shared->runs.load();
  all.steps = shared->steps.load();
  if (lowest < runs) all.failing = lowest;
  return all;
}

}  // namespace weir::detail
