// SPDX-License-Identifier: MIT
// The command line tool beside a process that writes to the journal.
#include <signal.h>

#include <string>
#include <vector>

#include "durable/journal_support.hpp"
#include "tools/tool_support.hpp"

using namespace durable_test;

namespace {

/// A child process that is killed at the end.
class other_process {
 public:
  template <class F>
  explicit other_process(F body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    body();
    ::_exit(0);
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;
  ~other_process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

/// Runs without end, in real time; with pauses, so that the reader is not the slower one.
void write_for_ever(const stage& on) {
  auto use = [](durable::engine& e) -> task<> {
    for (;;) {
      auto run = co_await e.start<int>("h", {}, 1);
      (void)co_await run.result();
      co_await weir::sleep(5ms);
    }
  };
  weir::run(with_open_engine(options_for(on), as_h(twice), use));
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Reads lines from a pipe.
class line_reader {
 public:
  explicit line_reader(int from) : from_(::fdopen(from, "r")) {}
  line_reader(const line_reader&) = delete;
  line_reader& operator=(const line_reader&) = delete;
  ~line_reader() { std::fclose(from_); }
  std::string next() {
    char* line = nullptr;
    std::size_t room = 0;
    const auto n = ::getline(&line, &room, from_);
    std::string text(line, n < 0 ? 0 : static_cast<std::size_t>(n));
    std::free(line);
    return text;
  }

 private:
  std::FILE* from_;
};

}  // namespace

TEST(tool_live, a_journal_in_use_is_read_a_hundred_times_and_is_always_well) {
  const stage on;
  const other_process engine([&] { write_for_ever(on); });
  while (weir_journal(on, {"check", on.journal()}).code != 0) ::sched_yield();
  std::size_t seen = 0;
  for (int i = 0; i < 100; ++i) {
    const char* const command = i % 3 == 0 ? "ls" : i % 3 == 1 ? "check" : "tail";
    const tool_end end = weir_journal(on, {command, on.journal(), "--json"});
    ASSERT_EQ(end.code, 0) << command << " " << i << ": " << end.err << end.out;
    if (i % 3 != 0) continue;
    EXPECT_GE(lines_in(end.out), seen);
    seen = lines_in(end.out);
  }
  EXPECT_GT(seen, 10u);
}

TEST(tool_live, tail_follows_records_across_segments) {
  const stage on;
  weir::detail::journal_options options;
  options.path = on.journal();
  options.segment_bytes = smallest_segment;
  options.sync = false;
  journal_aid::opened o(options);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const other_process tail([&] {
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::execl(tool_path, "weir", "journal", "tail", "-f", "-n", "1000", "--json",
            on.journal().c_str(), nullptr);
  });
  ::close(ends[1]);
  line_reader lines(ends[0]);
  for (int i = 1; i <= 300; ++i) {
    (void)o.j.append({.type = 99, .run = 1}, std::string(1000, 'x'));
    journal_aid::commit(o.j);
    if (i % 40 != 0) continue;
    for (int k = i - 39; k <= i; ++k)
      ASSERT_TRUE(lines.next().starts_with("{\"lsn\":" + std::to_string(k) + ",")) << k;
  }
  EXPECT_TRUE(std::filesystem::exists(on.journal() + "/seg-0000000000000004.wlog"));
}
