// SPDX-License-Identifier: MIT
// Opening a journal of very many ended runs: memory and work grow in proportion to them, with at
// most 100 bytes for a run. WEIR_ENDED_RUNS is how many (20,000 by default, ten million in a
// torture run). Memory is counted; the time is printed, not checked.
#include <cstdlib>
#include <ctime>

#include "durable/journal.hpp"
#include "durable/journal_files.hpp"
#include "durable/support/stage.hpp"
#include "durable/turn_record.hpp"
#include "support/allocations.hpp"

using namespace durable_test;

namespace {

namespace d = weir::detail;

std::uint64_t ended_runs_wanted() {
  const char* text = std::getenv("WEIR_ENDED_RUNS");
  return text != nullptr ? std::stoull(text) : 20'000;
}

std::int64_t segment_bytes_for(std::uint64_t runs) {
  return runs < 1'000'000 ? 4 * smallest_segment : std::int64_t{64} << 20;
}

struct no_records final : d::record_reader {
  void see(const d::record_head&, std::string_view, std::uint64_t, d::record_place) override {
    ADD_FAILURE() << "a new journal has a record";
  }
};

void append_ended_run(d::journal& to, std::uint64_t number) {
  const std::string id = "run-" + std::to_string(number);
  const weir::wall_time at = day0 + std::chrono::milliseconds(number);
  d::payload_writer start;
  d::start_record{
      .at = at, .begins = at, .id = id, .handler = "h", .key = {}, .idempotency = {}, .input = "1"}
      .write(start);
  to.append({.type = static_cast<std::uint16_t>(d::record_type::run_start), .run = number},
            start.view());
  d::payload_writer end;
  d::answer_record{at, errc{}, "2", {}}.write(end);
  to.append({.type = static_cast<std::uint16_t>(d::record_type::run_end),
             .flags = static_cast<std::uint16_t>(d::command_answer::kind::value),
             .run = number},
            end.view());
}

void write_ended_runs(const stage& on, std::uint64_t count) {
  d::journal to({.path = on.journal(),
                 .segment_bytes = static_cast<std::uint64_t>(segment_bytes_for(count)),
                 .sync = false});
  no_records nothing;
  to.open(nothing);
  for (std::uint64_t n = 1; n <= count; ++n) {
    append_ended_run(to, n);
    if (n % 1000 != 0 && n != count) continue;
    auto batch = to.take();
    to.commit(*batch);
    to.committed(std::move(batch));
  }
  to.close();
}

struct open_cost {
  long long peak = 0;  // bytes, during the open
  long long kept = 0;  // bytes, after it
  double seconds = 0;  // of the processor
};

open_cost open_ended_runs(const stage& on, std::uint64_t count, weir::duration retention,
                          const user& use) {
  durable::engine_options options = options_for(on);
  options.segment_bytes = segment_bytes_for(count);
  options.retention = retention;
  open_cost cost;
  auto body = [&](durable::engine& e) -> task<> {
    e.add("h", gives_its_input);
    const std::clock_t begun = std::clock();
    test_support::begin_to_count();
    co_await e.open();
    cost.kept = test_support::held_bytes;
    cost.peak = test_support::peak_bytes;
    test_support::end_count();
    cost.seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    co_await use(e);
  };
  sim::run({.seed = 1, .start_time = day0 + 24h * 365},
           [&] { return durable::with_engine(options, body); });
  return cost;
}

void print_cost(const char* what, std::uint64_t count, const open_cost& cost) {
  const auto per_run = [&](long long bytes) {
    return static_cast<double>(bytes) / static_cast<double>(count);
  };
  std::printf("%s: %llu runs opened in %.2f s of the processor, %.1f bytes a run, %.1f at most\n",
              what, static_cast<unsigned long long>(count), cost.seconds, per_run(cost.kept),
              per_run(cost.peak));
}

/// Buffers and the like, which do not grow.
constexpr long long constant_bytes = 4 << 20;

void expect_bounded(const open_cost& cost, std::uint64_t count) {
  EXPECT_LE(cost.peak, static_cast<long long>(100 * count) + constant_bytes);
  EXPECT_LE(cost.kept, static_cast<long long>(100 * count) + constant_bytes);
}

}  // namespace

TEST(durable_ended_runs_open, costs_at_most_100_bytes_for_each_run_that_is_kept) {
  const std::uint64_t all = ended_runs_wanted();
  open_cost half;
  open_cost whole;
  for (const std::uint64_t count : {all / 2, all}) {
    const stage on;
    write_ended_runs(on, count);
    const std::string id = "run-" + std::to_string(count / 2);
    auto use = [&](durable::engine& e) -> task<> {
      EXPECT_EQ(e.get(id)->state, durable::run_state::completed);
      auto run = co_await e.start<int>("h", {.id = id}, 1);
      EXPECT_EQ(co_await run.result(), 2);
    };
    open_cost& cost = count == all ? whole : half;
    cost = open_ended_runs(on, count, weir::duration::max(), use);
    print_cost("kept", count, cost);
    expect_bounded(cost, count);
  }
  // The second half costs no more than the bound either: nothing grows faster than the runs.
  EXPECT_LE(whole.peak - half.peak, static_cast<long long>(100 * (all - all / 2)) + (1 << 20));
}

TEST(durable_ended_runs_open, forgets_all_runs_whose_retention_is_over_and_removes_their_records) {
  const std::uint64_t count = ended_runs_wanted();
  const stage on;
  write_ended_runs(on, count);
  const auto segments = [&] {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(on.journal()))
      if (d::segment_number(entry.path().filename().string())) ++found;
    return found;
  };
  EXPECT_GE(segments(), 3u);
  auto use = [&](durable::engine& e) -> task<> {
    co_await weir::sleep(1s);
    EXPECT_FALSE(e.get("run-1"));
    EXPECT_FALSE(e.get("run-" + std::to_string(count)));
    EXPECT_TRUE(e.list().empty());
    EXPECT_LE(segments(), 3u);
  };
  const open_cost cost = open_ended_runs(on, count, 1h, use);
  print_cost("over", count, cost);
  expect_bounded(cost, count);
  const open_cost again =
      open_ended_runs(on, count, 1h, [](durable::engine&) -> task<> { co_return; });
  print_cost("after the compaction", count, again);
  EXPECT_LE(again.peak, 1 << 20);
}
