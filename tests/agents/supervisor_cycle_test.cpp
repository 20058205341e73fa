// SPDX-License-Identifier: MIT
// supervisor: calls that would wait for themselves, or at the wrong time or place, are refused.
#include <functional>

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

using request = std::function<task<std::error_code>()>;

/// An agent whose handler makes a request and keeps the answer.
class asker {
 public:
  task<> ask(request* what, std::error_code* answer) { *answer = co_await (*what)(); }
  task<> ask_in_child(request* what, std::error_code* answer) {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> { *answer = co_await (*what)(); });
      co_await s.join();
    });
  }
  task<> ask_through(weir::agent_ref<asker> other, request* what, std::error_code* answer) {
    co_await other.call(&asker::ask, what, answer);
  }
  int get() const { return 1; }
};

template <class Supervisor>
request stopping(Supervisor& sup) {
  return [&sup]() -> task<std::error_code> {
    co_return co_await code_after([&sup] { return sup.stop(); });
  };
}
template <class Supervisor>
request terminating(Supervisor& sup, std::string name) {
  return [&sup, name]() -> task<std::error_code> {
    co_return co_await code_after([&] { return sup.terminate_child(name); });
  };
}

}  // namespace
TEST(supervisor_cycle, stop_from_a_handler_of_a_descendant_is_refused_at_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    weir::supervisor inner(patient());
    auto deep = inner.add<asker>(kid("deep"));
    auto a = r.sup.add<asker>(kid("a"));
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    request stop = stopping(r.sup);
    co_await r.start();
    const auto start = weir::now();
    for (auto& ref : {a, deep}) {
      std::error_code answer;
      co_await ref.call(&asker::ask, &stop, &answer);
      EXPECT_EQ(answer, errc::call_cycle);
      answer = {};
      co_await ref.call(&asker::ask_in_child, &stop, &answer);
      EXPECT_EQ(answer, errc::call_cycle);
    }
    EXPECT_EQ(ms_since(start), 0);
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(co_await deep.call(&asker::get), 1);
  });
}
TEST(supervisor_cycle, stop_from_a_task_is_refused_at_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    std::vector<std::error_code> answers;
    auto o = kid("t", restart::transient);
    o.shutdown = weir::no_limit;
    r.sup.add_task(o, [&]() -> task<> {
      auto code = co_await code_after([&] { return r.sup.stop(); });
      answers.push_back(code);
      code = co_await code_after([&] { return r.sup.terminate_child("t"); });
      answers.push_back(code);
    });
    co_await r.start();
    EXPECT_EQ(answers, (std::vector<std::error_code>(2, errc::call_cycle)));
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(state_of(r.sup, "t"), "stopped");
  });
}
TEST(supervisor_cycle, to_terminate_an_ancestor_is_refused_at_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    weir::supervisor inner(patient());
    auto deep = inner.add<asker>(kid("deep"));
    inner.add<worker>(kid("sibling"), &r.log, std::string("sibling"));
    auto in = r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    r.add("uncle");
    co_await r.start();
    std::error_code answer;
    for (request ask : {terminating(r.sup, "inner"), stopping(in), terminating(in, "deep")}) {
      co_await deep.call(&asker::ask, &ask, &answer);
      EXPECT_EQ(answer, errc::call_cycle);
    }
    EXPECT_EQ(r.log.text(), "+sibling +uncle");
    for (request ask : {terminating(in, "sibling"), terminating(r.sup, "uncle")}) {
      co_await deep.call(&asker::ask, &ask, &answer);
      EXPECT_EQ(answer, std::error_code());
    }
    EXPECT_EQ(r.log.ended(), 2);
  });
}
TEST(supervisor_cycle, a_child_that_waits_for_the_one_who_stops_it_is_cut_off_at_its_limit) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.sup.add<asker>(kid("a"));
    co_await r.start();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto outsider = weir::spawn_agent<asker>(s, {.name = "outsider"});
      request stop = stopping(r.sup);
      std::error_code answer = errc::timeout;
      const auto start = weir::now();
      const auto code = co_await code_after(
          [&] { return a.call(&asker::ask_through, outsider, &stop, &answer); });
      EXPECT_EQ(code, errc::agent_stopped);
      EXPECT_EQ(ms_since(start), 5000);
      co_await settle();
      EXPECT_EQ(answer, std::error_code());
      EXPECT_EQ(co_await a.monitor(), ending::cancelled);
      EXPECT_TRUE(r.result.clean);
    });
  });
}
TEST(supervisor_cycle, a_child_may_cause_the_stop_without_waiting_for_it) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.sup.add<asker>(kid("a"));
    r.add("b");
    co_await r.start();
    request later = [&]() -> task<std::error_code> {
      r.home->spawn([&]() -> task<> { co_await r.sup.stop(); });
      co_return std::error_code();
    };
    std::error_code answer = errc::timeout;
    co_await a.call(&asker::ask, &later, &answer);
    co_await settle();
    EXPECT_EQ(answer, std::error_code());
    EXPECT_TRUE(r.result.clean);
  });
}

TEST(supervisor_cycle, a_child_may_ask_for_its_supervisor_s_children_and_add_to_them) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.sup.add<asker>(kid("a"));
    co_await r.start();
    request add = [&]() -> task<std::error_code> {
      EXPECT_EQ(counts(r.sup), "1 1 0 1");
      auto b = r.add("b");
      co_await r.sup.terminate_child("b");
      co_await r.sup.restart_child("b");
      EXPECT_EQ(co_await b.call(&worker::seen), 0);
      co_return std::error_code();
    };
    std::error_code answer = errc::timeout;
    co_await a.call(&asker::ask, &add, &answer);
    EXPECT_EQ(answer, std::error_code());
    EXPECT_EQ(children_of(r.sup), "b:running a:running");
  });
}

// A second run is refused, whether the first still runs or has ended.
TEST(supervisor_cycle, it_runs_only_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    co_await r.start();
    auto code = co_await code_after([&] { return r.sup.run(); });
    EXPECT_EQ(code, errc::already_running);
    EXPECT_EQ(r.log.text(), "+a");
    co_await r.sup.stop();
    co_await settle();
    EXPECT_TRUE(r.result.clean);
    code = co_await code_after([&] { return r.sup.run(); });
    EXPECT_EQ(code, errc::already_running);
    EXPECT_EQ(r.log.text(), "+a -a");
  });
}
TEST(supervisor_cycle, after_its_end_it_administers_nothing) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    co_await r.start();
    co_await r.sup.stop();
    co_await settle();
    auto code = co_await code_after([&] { return r.sup.terminate_child("a"); });
    EXPECT_EQ(code, errc::not_running);
    code = co_await code_after([&] { return r.sup.restart_child("a"); });
    EXPECT_EQ(code, errc::not_running);
    code = co_await code_after([&] { return r.sup.delete_child("a"); });
    EXPECT_EQ(code, errc::not_running);
    EXPECT_EQ(code_of(thrown_by([&] { r.add("b"); })), errc::not_running);
    EXPECT_EQ(static_cast<long>(r.sup.count_children().active), 0);
    co_await r.sup.stop();
    EXPECT_EQ(r.log.text(), "+a -a");
  });
}

TEST(supervisor_cycle, stop_before_run_returns_at_once) {
  simulate(patient(), [](rig& r) -> task<> {
    r.add("a");
    const auto start = weir::now();
    co_await r.sup.stop();
    EXPECT_EQ(ms_since(start), 0);
    EXPECT_EQ(r.log.text(), "");
  });
}

TEST(supervisor_cycle, one_that_never_ran_may_be_destroyed) {
  std::optional<worker_ref> ref;
  simulate(patient(), [&](rig& r) -> task<> {
    ref.emplace(r.add("a"));
    EXPECT_EQ(ref->cast(&worker::note, 1), sent::enqueued);
    weir::supervisor inner(patient());
    inner.add<worker>(kid("b"), &r.log, std::string("b"));
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    co_return;
  });
  EXPECT_EQ(ref->cast(&worker::note, 2), sent::stopped);
}
FIBER_TEST(supervisor_cycle,
           who_waits_for_a_child_of_one_that_never_ran_is_told_when_it_is_destroyed) {
  journal log;
  std::error_code code;
  bool heard = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto sup = std::make_unique<weir::supervisor>(patient());
    auto a = sup->add<worker>(kid("a"), &log, std::string("a"));
    s.spawn(
        [&, a]() -> task<> { code = co_await code_after([&] { return a.call(&worker::seen); }); });
    s.spawn([&, a]() -> task<> {
      (void)co_await a.monitor();
      heard = true;
    });
    co_await settle();
    EXPECT_FALSE(heard);
    sup.reset();
    co_await s.join();
  });
  EXPECT_EQ(code, errc::agent_stopped);
  EXPECT_TRUE(heard);
  EXPECT_EQ(log.text(), "");
}

TEST(supervisor_cycle, it_is_used_on_its_home_loop_only) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far");
    auto body = [&](rig& r) -> task<> {
      r.add("a");
      co_await r.start();
      std::vector<std::error_code> codes;
      auto there = [&]() -> task<> {
        auto code = co_await code_after([&] { return r.sup.stop(); });
        codes.push_back(code);
        code = co_await code_after([&] { return r.sup.terminate_child("a"); });
        codes.push_back(code);
        codes.push_back(code_of(thrown_by([&] { r.sup.count_children(); })));
        codes.push_back(code_of(thrown_by([&] { r.sup.which_children(); })));
        codes.push_back(code_of(thrown_by([&] { r.add("b"); })));
      };
      co_await weir::on(far, there);
      EXPECT_EQ(codes, (std::vector<std::error_code>(5, errc::wrong_loop)));
      EXPECT_EQ(r.log.text(), "+a");
    };
    w.run([&]() -> task<> { co_await with_rig(patient(), body); });
  });
}

// Several who stop it are all answered when it has ended.
TEST(supervisor_cycle, stop_may_be_asked_for_more_than_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::nap, 1s);
    co_await settle();
    int answered = 0;
    auto stop = [&]() -> task<> {
      co_await r.sup.stop();
      EXPECT_EQ(r.log.text(), "+a -a");
      ++answered;
    };
    r.home->spawn(stop());
    co_await weir::sleep(10ms);
    r.home->spawn(stop());
    r.home->spawn(stop());
    co_await weir::sleep(2s);
    EXPECT_EQ(answered, 3);
    EXPECT_TRUE(r.result.clean);
  });
}
TEST(supervisor_cycle, requests_that_wait_when_it_ends_are_answered) {
  in_every_order(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto b = r.add("b");
    co_await r.start();
    b.cast(&worker::nap, 2s);
    co_await settle();
    bool answered = false;
    auto terminate = [&]() -> task<> {
      (void)co_await code_after([&] { return r.sup.terminate_child("b"); });
      answered = true;
    };
    r.home->spawn(terminate());
    co_await weir::sleep(500ms);
    EXPECT_FALSE(answered);
    a.cast(&worker::crash);
    co_await weir::sleep(5s);
    EXPECT_TRUE(answered);
    EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
  });
}
