// SPDX-License-Identifier: MIT
// GoogleTest support: runs a test body under sim::explore.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <weir/sim/explore.hpp>

namespace weir {

namespace detail {

/// A run in which an EXPECT fails is a failing run: it is shrunk and reported like any other.
class expecting_program final : public program {
 public:
  explicit expecting_program(program& body) noexcept : body_(body) {}
  void run(sim::world& in) override {
    using reporter = ::testing::ScopedFakeTestPartResultReporter;
    ::testing::TestPartResultArray parts;
    {
      const reporter caught(reporter::INTERCEPT_ONLY_CURRENT_THREAD, &parts);
      body_.run(in);
    }
    std::string text;
    for (int i = 0; i < parts.size(); ++i)
      if (parts.GetTestPartResult(i).failed()) text.append(said(parts.GetTestPartResult(i)));
    if (!text.empty()) throw std::runtime_error(text);
  }

 private:
  static std::string said(const ::testing::TestPartResult& part) {
    const char* file = part.file_name();
    return std::string(file == nullptr ? "unknown file" : file) + ":" +
           std::to_string(part.line_number()) + ": " + part.message() + "\n";
  }
  program& body_;
};

}  // namespace detail

namespace testing {

/// Runs `op` under sim::explore. If a run or an EXPECT in it fails, the test fails and reports how
/// to replay it. In a run that otherwise passes, only an EXPECT on this thread counts.
template <class F>
  requires detail::simulated_program<F&>
sim::report explore(const sim::explore_options& options, F&& op,
                    std::source_location site = std::source_location::current()) {
  detail::program_of<std::remove_reference_t<F>> body(op, site);
  detail::expecting_program what(body);
  sim::report found = detail::explore(options, what);
  if (!found.ok()) ADD_FAILURE_AT(site.file_name(), static_cast<int>(site.line())) << found;
  return found;
}

}  // namespace testing
}  // namespace weir
