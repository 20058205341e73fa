// SPDX-License-Identifier: MIT
//
// Reads `size` rows in order, each as large as a record of weir's journal is on the average; what
// it would take to make runs of them is left out.
#include "peers/sqlite/database.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

constexpr int rounds = 3;
constexpr std::int64_t records_per_run = 10;

void fill(const std::string& path, std::int64_t size) {
  bench::database db(path, "OFF");
  const std::string payload(40, 'x');
  db.begin();
  for (std::int64_t i = 0; i < size; ++i) db.append(i / records_per_run, 1, payload);
  db.commit();
}

double read(const std::string& path, std::int64_t size, bool cold) {
  const auto start = bench::clock::now();
  const double used = bench::thread_nanoseconds();
  bench::database db(path);
  std::int64_t sum = 0;
  db.read_all([&](std::int64_t run, int type, int bytes) { sum += run + type + bytes; });
  bench::keep(sum);
  const double took = cold ? bench::nanoseconds_since(start) : bench::thread_nanoseconds() - used;
  return took / static_cast<double>(size);
}

void measure(const char* row, std::int64_t size, const bench::scratch& here, bool cold) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    if (cold) bench::make_cold(here.path(""));
    const double took = read(here.path("database"), size, cold);
    if (round > 0) each.add(took);
  }
  bench::report(row, size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  fill(here.path("database"), size);
  measure("recover_warm", size, here, false);
  measure("recover_cold", size, here, true);
}
