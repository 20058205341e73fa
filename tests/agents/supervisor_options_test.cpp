// SPDX-License-Identifier: MIT
// supervisor: what its options and those of its children mean when they are left out, and which of
// them are refused.
#include <memory>
#include <type_traits>

#include "supervisor_support.hpp"

using namespace supervisor_test;
using weir::auto_shutdown;

// Options may appear in a co_await expression, see docs/compilers.md.
static_assert(std::is_trivially_destructible_v<weir::supervisor_options>);
static_assert(std::is_trivially_destructible_v<weir::child_options>);

namespace {

/// The code with which a supervisor of these options is refused, when it is made or run.
std::error_code code_when_made(const weir::supervisor_options& options) {
  return code_of(thrown_by([&] {
    weir::sim::run({.seed = 1}, [&]() -> task<> {
      journal log;
      weir::supervisor sup(options);
      sup.add<worker>(kid("a"), &log, std::string("a"));
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          co_await settle();
          co_await sup.stop();
        });
        const auto error = co_await error_of(sup.run());
        if (!error) co_return;
        EXPECT_EQ(log.text(), "");
        std::rethrow_exception(error);
      });
    });
  }));
}

/// The code with which `add(rig&, options)` is refused; the supervisor is not run.
template <class Add>
std::error_code refused(const weir::supervisor_options& how, const weir::child_options& child,
                        Add add) {
  std::error_code code;
  simulate(how, [&](rig& r) -> task<> {
    code = code_of(thrown_by([&] { add(r, child); }));
    EXPECT_EQ(r.sup.which_children().size(), code ? 0u : 1u);
    co_return;
  });
  return code;
}
std::error_code refused_agent(const weir::child_options& child) {
  return refused(patient(), child, [](rig& r, const auto& o) { r.add(o, "a"); });
}
std::error_code refused_task(const weir::child_options& child) {
  return refused(patient(), child, [](rig& r, const auto& o) {
    r.sup.add_task(o, [&r]() -> task<> { co_await sleeper(r.log, "t")(); });
  });
}
std::error_code refused_supervisor(const weir::child_options& child) {
  return refused(patient(), child, [](rig& r, const auto& o) {
    weir::supervisor inner(patient());
    r.sup.add_supervisor(o, std::move(inner));
  });
}

struct keeps_pointer {
  explicit keeps_pointer(std::unique_ptr<int> p) : value(std::move(p)) {}
  int get() const { return *value; }
  std::unique_ptr<int> value;
};

}  // namespace
TEST(supervisor_options, what_is_left_out_is_one_for_one_and_three_restarts_in_five_seconds) {
  const weir::supervisor_options o;
  EXPECT_EQ(o.strategy, strategy::one_for_one);
  EXPECT_EQ(static_cast<long>(o.max_restarts), 3);
  EXPECT_EQ(weir::duration(o.within), weir::duration(5s));
  EXPECT_EQ(o.auto_shutdown, auto_shutdown::never);
  simulate({}, [](rig& r) -> task<> {
    auto a = r.add("a");
    r.add("b");
    co_await r.start();
    for (int i = 0; i < 3; ++i) {
      a.cast(&worker::crash);
      co_await settle();
    }
    EXPECT_EQ(r.log.text(), "+a +b -a +a -a +a -a +a");
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
  });
}
TEST(supervisor_options, a_child_is_permanent_and_not_significant_unless_it_says_so) {
  const weir::child_options o;
  EXPECT_EQ(o.restart, restart::permanent);
  EXPECT_FALSE(o.significant);
  EXPECT_EQ(o.on_error, weir::on_error::reply);
  EXPECT_EQ(o.on_restart, weir::mailbox::drop);
  EXPECT_EQ(o.overflow, weir::overflow::reject);
  EXPECT_EQ(weir::duration(o.backoff.base), weir::duration::zero());
}
TEST(supervisor_options, a_worker_has_five_seconds_to_stop) {
  simulate(patient(), [](rig& r) -> task<> {
    auto a = r.sup.add<worker>({.name = "a"}, &r.log, std::string("a"));
    co_await r.start();
    a.cast(&worker::nap, 1h);
    co_await settle();
    const auto start = weir::now();
    co_await r.sup.stop();
    EXPECT_EQ(ms_since(start), 5000);
    EXPECT_EQ(co_await a.monitor(), ending::cancelled);
  });
}
TEST(supervisor_options, a_supervisor_has_no_limit_to_stop) {
  simulate(patient(), [](rig& r) -> task<> {
    weir::supervisor inner(patient());
    auto slow = kid("slow");
    slow.shutdown = weir::no_limit;
    auto a = inner.add<worker>(slow, &r.log, std::string("a"));
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    co_await r.start();
    a.cast(&worker::nap, 1h);
    co_await settle();
    const auto start = weir::now();
    auto stopping = r.home->spawn([&]() -> task<> { co_await r.sup.stop(); });
    co_await weir::sleep(30min);
    EXPECT_EQ(state_of(r.sup, "inner"), "running");
    co_await stopping;
    EXPECT_EQ(ms_since(start), 3'599'999);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
  });
}
TEST(supervisor_options, bad_ones_are_refused_and_no_child_is_started) {
  EXPECT_EQ(code_when_made({}), std::error_code());
  EXPECT_EQ(code_when_made({.max_restarts = 0}), std::error_code());
  EXPECT_EQ(code_when_made({.max_restarts = -1}), errc::invalid_argument);
  EXPECT_EQ(code_when_made({.within = 0s}), errc::invalid_argument);
  EXPECT_EQ(code_when_made({.within = -1s}), errc::invalid_argument);
  EXPECT_EQ(code_when_made({.strategy = static_cast<strategy>(99)}), errc::invalid_argument);
  EXPECT_EQ(code_when_made({.auto_shutdown = static_cast<auto_shutdown>(99)}),
            errc::invalid_argument);
}
TEST(supervisor_options, bad_ones_of_a_child_are_refused_and_nothing_is_added) {
  auto with = [](auto change) {
    weir::child_options o = kid("a");
    change(o);
    return refused_agent(o);
  };
  EXPECT_EQ(with([](auto&) {}), std::error_code());
  EXPECT_EQ(with([](auto& o) { o.restart = static_cast<restart>(99); }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.shutdown = -10ms; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.capacity = 0; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.capacity = -1; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.overflow = weir::overflow::conflate; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.backoff.base = -1ms; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.backoff.factor = 0; }), errc::invalid_argument);
  EXPECT_EQ(with([](auto& o) { o.backoff.ceiling = -1ms; }), errc::invalid_argument);
}
TEST(supervisor_options, what_a_kind_of_child_cannot_use_is_refused) {
  auto with = [](auto change) {
    weir::child_options o = kid("a");
    change(o);
    return std::vector<std::error_code>{refused_agent(o), refused_task(o), refused_supervisor(o)};
  };
  const std::error_code no = errc::invalid_argument;
  using codes = std::vector<std::error_code>;
  EXPECT_EQ(with([](auto&) {}), (codes{{}, {}, {}}));
  EXPECT_EQ(with([](auto& o) { o.shutdown = 1s; }), (codes{{}, {}, {}}));
  EXPECT_EQ(with([](auto& o) { o.capacity = 8; }), (codes{{}, no, no}));
  EXPECT_EQ(with([](auto& o) { o.overflow = weir::overflow::drop_oldest; }), (codes{{}, no, no}));
  EXPECT_EQ(with([](auto& o) { o.on_error = weir::on_error::crash; }), (codes{{}, no, no}));
  EXPECT_EQ(with([](auto& o) { o.on_restart = weir::mailbox::keep; }), (codes{{}, no, no}));
  weir::sim::world w;
  const weir::loop_ref far = w.loop("far");
  EXPECT_EQ(with([&](auto& o) { o.on = far; }), (codes{{}, no, no}));
}
TEST(supervisor_options, an_empty_name_is_legal_never_a_duplicate_and_not_addressable) {
  simulate(patient(), [](rig& r) -> task<> {
    r.sup.add<worker>({}, &r.log, std::string("a"));
    r.sup.add<worker>({}, &r.log, std::string("b"));
    co_await r.start();
    EXPECT_EQ(r.log.text(), "+a +b");
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
    const auto code = co_await code_after([&] { return r.sup.terminate_child(""); });
    EXPECT_EQ(code, errc::no_such_child);
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
  });
}
TEST(supervisor_options, only_significant_with_never_and_with_permanent_is_a_bad_combination) {
  const auto adds = [](rig& r, const weir::child_options& o, int what) {
    if (what == 0) r.add(o, "a");
    if (what == 1) r.sup.add_task(o, sleeper(r.log, "t"));
    if (what == 2) r.sup.add_supervisor(o, weir::supervisor(patient()));
  };
  for (auto mode :
       {auto_shutdown::never, auto_shutdown::any_significant, auto_shutdown::all_significant}) {
    for (restart how : all_kinds) {
      for (int limit = 0; limit < 5; ++limit) {
        for (int bits = 0; bits < 6; ++bits) {
          weir::supervisor_options s = patient();
          s.auto_shutdown = mode;
          weir::child_options o = kid("a", how);
          if (limit == 1) o.shutdown = 0ms;
          if (limit == 2) o.shutdown = 1s;
          if (limit == 3) o.shutdown = weir::no_limit;
          if (limit == 4) o.shutdown = weir::no_wait;
          o.significant = bits % 2 == 1;
          const bool bad =
              o.significant && (mode == auto_shutdown::never || how == restart::permanent);
          const auto code =
              refused(s, o, [&](rig& r, const auto& child) { adds(r, child, bits / 2); });
          EXPECT_EQ(code, bad ? std::error_code(errc::invalid_argument) : std::error_code())
              << text_of(how) << ", mode " << static_cast<int>(mode) << ", limit " << limit
              << ", kind and significant " << bits;
        }
      }
    }
  }
}
TEST(supervisor_options, a_refused_child_says_which_options_do_not_go_together) {
  simulate(patient(), [](rig& r) -> task<> {
    auto o = kid("a", restart::transient);
    o.significant = true;
    co_await r.start();
    const auto error = thrown_by([&] { r.add(o, "a"); });
    EXPECT_EQ(code_of(error), errc::invalid_argument);
    EXPECT_TRUE(contains(what_of(error), "significant")) << what_of(error);
    EXPECT_TRUE(contains(what_of(error), "never")) << what_of(error);
    EXPECT_EQ(counts(r.sup), "0 0 0 0");
  });
}
TEST(supervisor_options, a_name_is_given_once_and_the_second_child_is_forgotten) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [](rig& r) -> task<> {
      r.add("a");
      EXPECT_EQ(code_of(thrown_by([&] { r.add("a"); })), errc::invalid_argument);
      r.add("b");
      co_await r.start();
      EXPECT_EQ(code_of(thrown_by([&] { r.add("b"); })), errc::invalid_argument);
      const auto task_error = thrown_by([&] { r.sup.add_task(kid("a"), sleeper(r.log, "t")); });
      EXPECT_EQ(code_of(task_error), errc::invalid_argument);
      EXPECT_EQ(r.log.text(), "+a +b");
      EXPECT_EQ(counts(r.sup), "2 2 0 2");
    });
  }
}
TEST(supervisor_options, the_name_of_a_stopped_child_is_still_taken) {
  simulate(patient(), [](rig& r) -> task<> {
    r.add("a");
    co_await r.start();
    co_await r.sup.terminate_child("a");
    EXPECT_EQ(code_of(thrown_by([&] { r.add("a"); })), errc::invalid_argument);
    EXPECT_EQ(counts(r.sup), "1 0 0 1");
    co_await r.sup.delete_child("a");
    r.add("a");
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a -a +a");
  });
}
TEST(supervisor_options, dynamic_has_no_auto_shutdown) {
  EXPECT_EQ(code_when_made({.strategy = strategy::dynamic}), std::error_code());
  for (auto mode : {auto_shutdown::any_significant, auto_shutdown::all_significant})
    EXPECT_EQ(code_when_made({.strategy = strategy::dynamic, .auto_shutdown = mode}),
              errc::invalid_argument);
}
TEST(supervisor_options, arguments_that_cannot_be_copied_are_for_temporary_children_only) {
  simulate(patient(), [](rig& r) -> task<> {
    for (restart how : {restart::permanent, restart::transient}) {
      const auto error =
          thrown_by([&] { r.sup.add<keeps_pointer>(kid("p", how), std::make_unique<int>(7)); });
      EXPECT_EQ(code_of(error), errc::invalid_argument);
    }
    auto x = r.sup.add<keeps_pointer>(kid("x", restart::temporary), std::make_unique<int>(7));
    co_await r.start();
    EXPECT_EQ(co_await x.call(&keeps_pointer::get), 7);
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
  });
}
