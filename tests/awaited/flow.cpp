// SPDX-License-Identifier: MIT
// Which conditions and logical expressions with an await a compiler evaluates wrongly. Each form is
// compiled three times: as a plain function, which says what is right, and as a coroutine, with a
// local variable and without. Both get the same answers; what they ask and do must be the same.
// Prints the name of each form that went wrong; check.cmake compares that with the known defects.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "coroutine.hpp"
#include "forms.hpp"

namespace {

constexpr std::size_t trace_max = 60;

std::string trace;  // what was asked and marked
const std::string letters = "pq";
unsigned answers = 0;
bool is_plain = false;  // the function that says what is right runs
bool parks = false;     // whether awaits suspend

/// This script does not end the loop of this form.
struct endless {};

void mark(char c) {
  trace += c;
  if (trace.size() <= trace_max) return;
  if (is_plain) throw endless();
  _exit(1);
}
bool enough() { return trace.size() > 4; }
char letter(bool b) { return b ? 't' : 'f'; }
bool same(bool b) { return b; }
/// The next bit of the script; no, when there are no more.
bool answer(char who) {
  mark(who);
  const bool yes = (answers & 1) != 0;
  answers >>= 1;
  return yes;
}

/// Trivial, so that nothing is to be cleaned up after it.
struct question {
  char who;
  bool await_ready() const noexcept { return !parks; }
  void await_suspend(std::coroutine_handle<> me) const noexcept { parked = me; }
  bool await_resume() const { return answer(who); }
  question awaited() && { return *this; }
};
/// Owns a frame.
task<bool> asked(char who) {
  if (parks) co_await park{};
  co_return answer(who);
}

#define PARAMETERS [[maybe_unused]] bool on
#define FUNCTION(name, result, local, ...) \
  result name(PARAMETERS) {                \
    local;                                 \
    __VA_ARGS__;                           \
    RETURN 0;                              \
  }
#define PLAIN(position, e, ...) \
  FUNCTION(plain_##position##_##e, int, , AT_##position((__VA_ARGS__)))
#define WITHOUT(position, e, ...) \
  FUNCTION(without_##position##_##e, task<int>, , AT_##position((__VA_ARGS__)))
#define WITH(position, e, ...) \
  FUNCTION(with_##position##_##e, task<int>, int local = 0, AT_##position((__VA_ARGS__)))
#define OWNER(position, e, ...) \
  FUNCTION(owner_##position##_##e, task<int>, , AT_##position((__VA_ARGS__)))
#define OWNER_WITH(position, e, ...) \
  FUNCTION(owner_with_##position##_##e, task<int>, int local = 0, AT_##position((__VA_ARGS__)))
#define ALL_PLAIN(position) EXPRESSIONS(PLAIN, position)
#define ALL_WITHOUT(position) EXPRESSIONS(WITHOUT, position)
#define ALL_WITH(position) EXPRESSIONS(WITH, position)
#define ALL_OWNER(position) EXPRESSIONS(OWNER, position)
#define ALL_OWNER_WITH(position) EXPRESSIONS(OWNER_WITH, position)

#define ASK(c) answer(c)
#define RETURN return
FLOWS(ALL_PLAIN)
#undef ASK
#undef RETURN
#define RETURN co_return
#define ASK(c) \
  co_await question { c }
FLOWS(ALL_WITHOUT)
FLOWS(ALL_WITH)
#undef ASK
#define ASK(c) co_await asked(c)
FLOWS(ALL_OWNER)
FLOWS(ALL_OWNER_WITH)

struct form {
  const char* name;
  int (*right)(bool);
  task<int> (*tested)(bool);
};
#define ROW_WITHOUT(p, e, ...) {#p " " #e ", no local", plain_##p##_##e, without_##p##_##e},
#define ROW_WITH(p, e, ...) {#p " " #e ", a local", plain_##p##_##e, with_##p##_##e},
#define ROW_OWNER(p, e, ...) {#p " " #e ", no local, a task", plain_##p##_##e, owner_##p##_##e},
#define ROW_OWNER_WITH(p, e, ...) \
  {#p " " #e ", a local, a task", plain_##p##_##e, owner_with_##p##_##e},
#define ROWS_WITHOUT(position) EXPRESSIONS(ROW_WITHOUT, position)
#define ROWS_WITH(position) EXPRESSIONS(ROW_WITH, position)
#define ROWS_OWNER(position) EXPRESSIONS(ROW_OWNER, position)
#define ROWS_OWNER_WITH(position) EXPRESSIONS(ROW_OWNER_WITH, position)
constexpr form forms[] = {FLOWS(ROWS_WITHOUT) FLOWS(ROWS_WITH) FLOWS(ROWS_OWNER)
                              FLOWS(ROWS_OWNER_WITH)};

int run(const task<int>& t) {
  parked = t.frame;
  while (!t.frame.done()) {
    if (!parked) _exit(1);
    std::exchange(parked, nullptr).resume();
  }
  return *t.frame.promise().result;
}

/// What a form did.
struct deed {
  int result = 0;
  std::string trace;
  bool operator==(const deed&) const = default;
};

/// Empty if it does not end.
std::optional<deed> right_deed(const form& f, bool on, unsigned script) {
  trace.clear();
  answers = script;
  is_plain = true;
  std::optional<deed> right;
  try {
    const int result = f.right(on);
    right.emplace(deed{result, trace});
  } catch (const endless&) {
  }
  is_plain = false;
  return right;
}

bool differs(const form& f, bool on, unsigned script) {
  const std::optional<deed> right = right_deed(f, on, script);
  if (!right) return false;
  for (const bool parking : {false, true}) {
    trace.clear();
    answers = script;
    parks = parking;
    const task<int> t = f.tested(on);
    const int result = run(t);
    if (*right != deed{result, trace}) return true;
  }
  return false;
}

bool goes_wrong(const form& f) {
  for (unsigned script = 0; script < 64; ++script)
    if (differs(f, false, script) || differs(f, true, script)) return true;
  return false;
}

bool goes_wrong_in_a_process(const form& f) {
  const pid_t child = fork();
  if (child == 0) {
    (void)std::freopen("/dev/null", "w", stderr);
    alarm(60);
    _exit(goes_wrong(f) ? 1 : 0);
  }
  int status = 0;
  return waitpid(child, &status, 0) != child || status != 0;
}

}  // namespace

int main() {
  for (const form& f : forms) {
    if (goes_wrong_in_a_process(f)) std::puts(f.name);
    (void)std::fflush(stdout);
  }
}
