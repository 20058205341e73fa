// SPDX-License-Identifier: MIT
// process::run: what a program is given, what it returns, and what is refused.
#include <cstdlib>

#include "process_support.hpp"

using namespace weir_test;

namespace {

/// Runs a command on a loop of its own.
io::process_result result_of(const io::command& what, io::process_options options = {}) {
  auto program = [&]() -> task<io::process_result> {
    co_return co_await io::process::run(what, options);
  };
  return weir::run(program);
}

std::exception_ptr failure_of(const io::command& what, io::process_options options = {}) {
  return thrown_by([&] { return result_of(what, options); });
}

void write_program(const std::string& path, const std::string& text, int mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(::fchmod(file, static_cast<mode_t>(mode)), 0);
  ::close(file);
}

}  // namespace

TEST(process, output_and_errors_and_the_exit_code_come_back) {
  const auto r = result_of(script("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(r.code(), 3);
  EXPECT_EQ(r.signal(), 0);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.out(), "out\n");
  EXPECT_EQ(r.err(), "err\n");
  EXPECT_TRUE(result_of(io::command("true")).ok());
  EXPECT_TRUE(has_no_child());
}

TEST(process, a_signal_that_ended_it_is_told) {
  const auto r = result_of(script("kill -TERM $$"));
  EXPECT_EQ(r.signal(), SIGTERM);
  EXPECT_EQ(r.code(), -1);
  EXPECT_FALSE(r.ok());
}

TEST(process, arguments_arrive_as_they_are_because_there_is_no_shell) {
  io::command c("printf", "%s|", "$HOME;", "*", "a b", "", "\"'\\");
  c.arg("added");
  EXPECT_EQ(result_of(c).out(), "$HOME;|*|a b||\"'\\|added|");
}

TEST(process, the_environment_is_ours_with_changes) {
  ::setenv("WEIR_KEPT", "kept", 1);
  ::setenv("WEIR_CHANGED", "before", 1);
  io::command c = script("echo $WEIR_KEPT,$WEIR_CHANGED,$WEIR_NEW; env | grep -c WEIR_CHANGED=");
  c.env("WEIR_CHANGED", "first").env("WEIR_CHANGED", "a = b").env("WEIR_NEW", "");
  EXPECT_EQ(result_of(c).out(), "kept,a = b,\n1\n");
  EXPECT_STREQ(std::getenv("WEIR_CHANGED"), "before");
}

TEST(process, it_starts_in_the_folder_it_is_given) {
  scratch_folder d;
  write_program(d / "here", "#!/bin/sh\necho found\n", 0755);
  EXPECT_EQ(result_of(script("pwd").cwd("/")).out(), "/\n");
  EXPECT_EQ(result_of(io::command("./here").cwd(d / "")).out(), "found\n");
  const auto missing = failure_of(io::command("true").cwd(d / "missing"));
  EXPECT_EQ(code_of(missing), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(contains(what_of(missing), d / "missing")) << what_of(missing);
  EXPECT_EQ(code_of(failure_of(io::command("true").cwd(d / "here"))), std::errc::not_a_directory);
}

TEST(process, the_program_is_searched_in_the_path_that_it_will_have) {
  scratch_folder d;
  scratch_folder other;
  write_program(d / "weir-tool", "#!/bin/sh\necho from d\n", 0755);
  write_program(other / "weir-tool", "not for me", 0600);
  EXPECT_EQ(code_of(failure_of(io::command("weir-tool"))), std::errc::no_such_file_or_directory);
  io::command c("weir-tool");
  c.env("PATH", (other / "") + ":" + (d / "") + ":/usr/bin:/bin");
  EXPECT_EQ(result_of(c).out(), "from d\n");
  io::command here("weir-tool");
  here.env("PATH", ":/usr/bin:/bin").cwd(d / "");  // an empty entry is the child's folder
  EXPECT_EQ(result_of(here).out(), "from d\n");
  io::command refused("weir-tool");
  refused.env("PATH", other / "");
  EXPECT_EQ(code_of(failure_of(refused)), std::errc::permission_denied);
}

TEST(process, what_cannot_start_throws_the_systems_code_and_names_the_program) {
  scratch_folder d;
  write_program(d / "text", "just text\n", 0755);
  const auto missing = failure_of(io::command("no-such-program-weir"));
  EXPECT_EQ(code_of(missing), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(contains(what_of(missing), "no-such-program-weir")) << what_of(missing);
  EXPECT_EQ(code_of(failure_of(io::command(d / "text"))), std::errc::executable_format_error);
  EXPECT_EQ(code_of(failure_of(io::command(d / ""))), std::errc::permission_denied);
  EXPECT_EQ(code_of(failure_of(io::command("./no/such"))), std::errc::no_such_file_or_directory);
  io::command too_long("true");
  too_long.arg(std::string(8 << 20, 'x'));
  EXPECT_EQ(code_of(failure_of(too_long)), std::errc::argument_list_too_long);
  EXPECT_TRUE(has_no_child());
}

TEST(process, a_command_refuses_what_no_program_can_get) {
  const std::string with_nul("a\0b", 3);
  io::command c("true");
  EXPECT_EQ(code_of(thrown_by([] { return io::command(""); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return io::command(with_nul); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return &c.arg(with_nul); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return &c.cwd(""); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return &c.env("", "x"); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return &c.env("a=b", "x"); })), errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([&] { return &c.env("a", with_nul); })), errc::invalid_argument);
  EXPECT_EQ(code_of(failure_of(c, {.grace = -1s})), errc::invalid_argument);
  EXPECT_EQ(code_of(failure_of(c, {.max_output = -1})), errc::invalid_argument);
}

TEST(process, input_is_fed_while_output_is_read_and_ends_then) {
  std::string text(3 << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  io::command c("cat");
  c.input(text);
  const auto r = result_of(c, {.max_output = 4 << 20});
  EXPECT_TRUE(r.ok());
  EXPECT_TRUE(r.out() == text);
  EXPECT_EQ(result_of(io::command("wc", "-c").input("12345")).out(), "5\n");
  EXPECT_EQ(result_of(io::command("wc", "-c").input("")).out(), "0\n");
}

TEST(process, without_input_it_reads_an_empty_one) {
  EXPECT_EQ(result_of(io::command("wc", "-c")).out(), "0\n");
}

TEST(process, one_that_does_not_read_its_input_is_no_error_and_raises_no_signal) {
  const std::string much(1 << 20, 'i');
  EXPECT_TRUE(result_of(io::command("true").input(much)).ok());
  EXPECT_EQ(result_of(script("exec <&-; echo closed; sleep 0.01").input(much)).out(), "closed\n");
  EXPECT_EQ(result_of(script("head -c 2").input(much)).out(), "ii");
}

TEST(process, more_output_than_allowed_ends_it) {
  const auto failure = failure_of(io::command("yes"), {.max_output = 100'000});
  EXPECT_EQ(code_of(failure), errc::too_large);
  EXPECT_TRUE(contains(what_of(failure), "'yes'")) << what_of(failure);
  EXPECT_TRUE(contains(what_of(failure), "100000")) << what_of(failure);
  EXPECT_TRUE(has_no_child());
  EXPECT_EQ(code_of(failure_of(script("printf 123; printf 456 >&2"), {.max_output = 5})),
            errc::too_large);
  EXPECT_TRUE(result_of(script("printf 123; printf 456 >&2"), {.max_output = 6}).ok());
  EXPECT_TRUE(result_of(io::command("true"), {.max_output = 0}).ok());
}

TEST(process, it_has_default_signals_an_empty_mask_its_own_group_and_no_descriptor_but_three) {
  struct sigaction ignored{};
  struct sigaction before{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &before);
  sigset_t blocked;
  sigset_t mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  const int inherited = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  // Of programs that are no shells, which would ignore signals and open files by themselves.
  const auto mask_of = [](const char* field) {
    const auto line = result_of(io::command("grep", field, "/proc/self/status"));
    return std::stoull(line.out().substr(line.out().find(':') + 1), nullptr, 16);
  };
  constexpr unsigned long long of_the_c_library = 3ULL << 31;  // 32 and 33, which it ignores
  EXPECT_EQ(mask_of("SigBlk"), 0U);
  EXPECT_EQ(mask_of("SigIgn") & ~of_the_c_library, 0U);
  const auto files = result_of(io::command("ls", "/proc/self/fd"));
  EXPECT_EQ(files.out(), "0\n1\n2\n3\n");  // 3 is the folder that ls reads
  const auto group =
      result_of(script("echo $$; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 "
                       "/proc/$$/stat"));
  const std::size_t line = group.out().find('\n');
  EXPECT_EQ(std::stoi(group.out()), std::stoi(group.out().substr(line + 1))) << group.out();
  ::close(inherited);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST(process, closed_standard_descriptors_of_ours_do_no_harm) {
  const pid_t child = ::fork();
  if (child == 0) {  // a process of its own, because its descriptors are used by all tests
    for (int i = 0; i < 3; ++i) ::close(i);
    io::command c = script("cat; echo err >&2");
    c.input("through");
    const auto r = result_of(c);
    ::_exit(r.ok() && r.out() == "through" && r.err() == "err\n" ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(process, an_ignored_sigchld_is_refused_because_the_exit_status_would_be_lost) {
  struct sigaction ignored{};
  struct sigaction before{};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignored, &before);
  EXPECT_EQ(code_of(failure_of(io::command("true"))), errc::invalid_argument);
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_TRUE(result_of(io::command("true")).ok());
}

TEST(process, children_of_other_code_are_not_reaped_and_sigchld_is_not_touched) {
  struct sigaction before{};
  struct sigaction after{};
  ::sigaction(SIGCHLD, nullptr, &before);
  const pid_t other = ::fork();
  if (other == 0) ::_exit(7);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(result_of(io::command("true")).ok());
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  ::sigaction(SIGCHLD, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(process, a_command_can_run_many_times_at_once) {
  auto program = []() -> task<> {
    io::command c = script("cat; exit 2");
    c.input("same");
    std::vector<task<io::process_result>> runs;
    for (int i = 0; i < 10; ++i) runs.push_back(io::process::run(c));
    c.input("changed later");
    for (const auto& r : co_await weir::all(std::move(runs))) {
      EXPECT_EQ(r.out(), "same");
      EXPECT_EQ(r.code(), 2);
    }
    const auto temporary = co_await io::process::run(io::command("cat").input("gone"));
    EXPECT_EQ(temporary.out(), "gone");
  };
  weir::run(program);
  EXPECT_TRUE(has_no_child());
}

FIBER_TEST(process, a_simulation_has_none) {
  io::command c("true");
  EXPECT_EQ(co_await code_after([&] { return io::process::run(c); }), errc::invalid_argument);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    EXPECT_EQ(code_of(thrown_by([&] { return io::process::spawn(s, c); })), errc::invalid_argument);
    co_return;
  });
}
