// SPDX-License-Identifier: MIT
// A run that waits for a person: an awakeable is an external promise with an id, which is given out
// and resolved later, or not at all. A defer undoes what was done before, unless the answer is yes.

#include <cstdio>
#include <string>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

std::string question;  // the e-mail with the id, as the person sees it

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> checkout(int cents) {
  std::string answer = "refused";
  auto body = [&](weir::scope& s) -> task<> {
    // Registered before the step: if that is interrupted, the money may have moved.
    s.defer([&]() -> task<> {
      if (answer != "approved") co_await weir::step("refund", [] { say("refund"); });
    });
    co_await weir::step("charge", [&] { say("charge " + std::to_string(cents)); });
    auto approval = weir::awakeable<bool>("approval");
    co_await weir::step("ask", [&] { question = approval.id(); });
    if (co_await weir::with_timeout(72h, approval.wait())) answer = "approved";
  };
  co_await weir::with_scope(body);
  co_return answer;
}

enum class person { approves, refuses, rejects, says_nothing };

task<> play(weir::durable::engine& e, const char* title, person who) {
  std::puts(title);
  auto run = co_await e.start<std::string>("checkout", {}, 900);
  co_await weir::sleep(1h);
  bool counts = false;  // true for the first answer to a run that has not ended
  if (who == person::approves) counts = co_await e.resolve(question, true);
  if (who == person::refuses) counts = co_await e.resolve(question, false);
  if (who == person::rejects) counts = co_await e.reject(question, "the desk is closed");
  try {
    say(co_await run.result());
  } catch (const weir::error& error) {  // timeout_error, terminal_error
    say(std::string("failed: ") + error.what());
  }
  const bool again = co_await e.resolve(question, true);
  say(std::string("the answer ") + (counts ? "counts" : "is missing") +
      (again ? ", and so does a second one" : ", a later one changes nothing"));
}

task<> program(weir::sim::world& w) {
  auto body = [](weir::durable::engine& e) -> task<> {
    e.add("checkout", checkout);
    co_await e.open();
    co_await play(e, "yes", person::approves);
    co_await play(e, "no", person::refuses);
    co_await play(e, "an error instead of an answer", person::rejects);
    co_await play(e, "nothing for three days", person::says_nothing);
  };
  co_await weir::durable::with_engine(
      {.path = "orders.weir", .segment_bytes = 64 << 10, .disk = &w.disk()}, body);
}

}  // namespace

int main() { weir::sim::run({}, program); }
