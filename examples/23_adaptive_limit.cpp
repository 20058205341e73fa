// SPDX-License-Identifier: MIT
// A limit that adapts: the capacity of a server is unknown, and changes. The clients measure how
// long their calls take. While that stays the same, the limit grows; when it rises, because calls
// wait inside the server, the limit shrinks.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

/// Works on as many calls at once as it has cores, for 10 ms each; the others wait.
class server {
 public:
  explicit server(int cores) : cores_(cores, {.name = "cores"}) {}
  void set_cores(int count) { cores_.resize(count); }
  int cores() const { return static_cast<int>(cores_.capacity()); }
  /// Calls that wait in the server: time that its clients lose.
  int backlog() const { return static_cast<int>(cores_.waiting()); }

  task<> call() {
    auto core = co_await cores_.acquire();
    co_await weir::sleep(10ms);
  }

 private:
  weir::counting_governor cores_;
};

task<> client(weir::adaptive_governor& limit, server& s) {
  for (;;) co_await limit.with([&] { return s.call(); });
}

void plot(const weir::adaptive_governor& g, const server& s) {
  const auto limit = static_cast<std::size_t>(g.limit());
  std::string bar(limit, '#');
  const auto cores = static_cast<std::size_t>(s.cores());
  bar.resize(bar.size() > cores ? bar.size() : cores + 1, ' ');
  bar[cores] = '|';  // the capacity of the server
  bar.erase(bar.find_last_not_of(' ') + 1);
  std::printf("%5.1f s %4d %4d  %s\n",
              static_cast<double>(weir::now().time_since_epoch() / 1ms) / 1000,
              static_cast<int>(g.limit()), s.backlog(), bar.c_str());
}

task<> load_step() {
  server s(40);
  weir::adaptive_governor limit({.name = "server", .initial = 10, .max = 200});
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    for (int i = 0; i < 300; ++i) scope.background(client(limit, s));
    std::puts("   time limit wait  # let through, | cores of the server");
    for (int tick = 0; tick <= 24; ++tick) {
      if (tick == 8) s.set_cores(10);
      if (tick == 16) s.set_cores(40);
      plot(limit, s);
      co_await weir::sleep(100ms);
    }
  });
}

}  // namespace

int main() { weir::sim::run({}, load_step); }
