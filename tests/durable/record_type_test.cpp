// SPDX-License-Identifier: MIT
// Journals of a later version. Promise: records of a type that this version does not know are
// refused, with file and offset, and no file is changed.
#include "durable/journal_support.hpp"
#include "durable/run_record.hpp"
#include "durable/support/stage.hpp"

using namespace durable_test;
using weir::detail::record_type;

namespace {

task<int> hears(int n) { co_return n + co_await weir::signal<int>("go").wait(); }

durable::engine_options on_j(sim::world& w) {
  durable::engine_options options = on_disk(w);
  options.path = "j";
  return options;
}

/// A run that waits, in the journal "j".
void leave_waiting(sim::world& w) {
  w.run(with_open_engine(on_j(w), as_h(hears), [](durable::engine& e) -> task<> {
    (void)co_await e.start<int>("h", {.id = "r"}, 1);
    co_await weir::sleep(1s);
  }));
}

/// Adds a record of this type to run 1; where it is.
weir::detail::record_place add_record(sim::world& w, std::uint16_t type, std::uint64_t run) {
  journal_aid::opened o(w.disk(), smallest_segment);
  const auto at = o.j.append({.type = type, .run = run}, "what this version cannot read");
  journal_aid::commit(o.j);
  return at.place;
}

std::exception_ptr open_error(sim::world& w) {
  return test_support::thrown_by([&] {
    w.run(with_open_engine(on_j(w), as_h(hears), [](durable::engine&) -> task<> { co_return; }));
  });
}

}  // namespace

TEST(durable_record_type, that_is_not_known_is_refused_with_its_place_and_nothing_is_changed) {
  constexpr auto last = static_cast<std::uint16_t>(record_type::skip);
  for (const std::uint16_t type : {std::uint16_t{last + 1}, std::uint16_t{1000}}) {
    for (const std::uint64_t run : {1u, 2u}) {  // one that the journal has, and one that it has not
      const stage on;
      sim::world w({.seed = 1, .start_time = day0});
      leave_waiting(w);
      const auto place = add_record(w, type, run);
      const auto before = journal_aid::files(w.disk());
      const auto error = open_error(w);
      EXPECT_EQ(test_support::code_of(error), errc::journal_corrupt);
      const std::string offset = std::to_string(weir::detail::offset_of(place));
      for (const std::string& part :
           {"type " + std::to_string(type), offset, journal_aid::segment(1)})
        EXPECT_TRUE(test_support::contains(test_support::what_of(error), part))
            << test_support::what_of(error);
      EXPECT_EQ(journal_aid::files(w.disk()), before);
    }
  }
}
