// SPDX-License-Identifier: MIT
// Statistics over windows: a sensor that reports irregularly, summed up once per second and
// plotted, with a moving mean over the last three windows.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

/// Milliseconds that requests took: a slow wave, and an occasional peak.
weir::stream<double> latencies() {
  for (int i = 0;; ++i) {
    co_await weir::sleep(40ms + 15ms * (i % 5));
    const double wave = 20 + 12 * std::sin(i / 25.0);
    co_yield i % 17 == 0 ? 2 * wave : wave + i % 7;
  }
}

struct window {
  std::size_t count;
  double low, mean, high;
};

window sum_up(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {values.size(), *low, sum / static_cast<double>(values.size()), *high};
}

/// low to high as a line, the mean as an o.
std::string bar(const window& w) {
  const auto column = [](double value) { return static_cast<std::size_t>(std::lround(value)); };
  std::string text(column(w.high) + 1, ' ');
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(column(w.low)), text.end(), '-');
  text[column(w.mean)] = 'o';
  return text;
}

void plot(const window& w) {
  std::printf("%4.1f s %3zu |%s\n",
              static_cast<double>(weir::now().time_since_epoch() / 100ms) / 10, w.count,
              bar(w).c_str());
}

double mean_of_means(const std::vector<window>& windows) {
  double sum = 0;
  for (const window& w : windows) sum += w.mean;
  return sum / static_cast<double>(windows.size());
}

task<> program() {
  std::puts("   time  n |0        10        20        30        40        50  ms");
  // A window ends one second after its first value, or with its hundredth.
  auto windows =
      latencies() | weir::chunks(100, 1s) | weir::map(sum_up) | weir::take(12) | weir::tap(plot);
  // Each stage pulls from the one before: the plot is drawn while the means are computed.
  auto means = std::move(windows) | weir::sliding(3) | weir::map(mean_of_means);
  const auto all = co_await (std::move(means) | weir::to_vector());
  std::printf("moving mean:");
  for (const double mean : all) std::printf(" %.1f", mean);
  std::puts(" ms");
}

}  // namespace

int main() { weir::sim::run({}, program); }
