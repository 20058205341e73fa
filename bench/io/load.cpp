// SPDX-License-Identifier: MIT
//
// The client of every server of this layer: starts the server on one core, stays on another, and
// reports what bench/run reads. `io_load PROGRAM CONNECTIONS SERVER...` starts `SERVER... 0
// BUFFER`, which prints its port.
#include "io/clients.hpp"
#include "io/tls_clients.hpp"

namespace {

using bench::report;

/// What a program sends, and how often.
struct plan {
  const char* program;
  const char* row;      // what its rows begin with
  std::size_t message;  // bytes of an echo; 0: HTTP
  int buffer;           // of the server for one connection
  std::int64_t trips;   // of all connections together; 0: the connections stay idle
  bool tls = false;     // of echoes; without a message a trip is a connection and its handshake
  bool spread = false;  // the server may use all cores, and shares that of its clients
  bool ws = false;      // messages of WebSocket
};

constexpr std::size_t small = 64;
constexpr std::size_t large = 64 * 1024;
constexpr plan plans[] = {
    {"io_echo", "echo", small, 1024, 200'000},
    {"io_echo_bulk", "bulk", large, int(large), 10'000},
    {"io_echo_idle", "echo_idle", small, 1024, 0},
    {"io_loops1", "loops", small, 1024, 200'000, false, true},
    {"io_loops2", "loops", small, 1024, 200'000, false, true},
    {"io_ws", "ws", small, 1024, 200'000, false, false, true},
    {"io_ws_bulk", "ws_bulk", large, int(large), 10'000, false, false, true},
    {"io_http", "http", 0, 1024, 100'000},
    {"io_http_idle", "http_idle", 0, 1024, 0},
    {"io_tls", "tls", small, 1024, 50'000, true},
    {"io_tls_bulk", "tls_bulk", large, int(large), 3'000, true},
    {"io_tls_handshake", "tls_handshake", 0, 1024, 1'000, true},
};

const plan& find_plan(const char* program) {
  for (const plan& p : plans)
    if (std::strcmp(p.program, program) == 0) return p;
  errno = 0;
  bench::give_up(std::string("no program '") + program + "'");
}

std::string row_name(const plan& p, const char* what) { return std::string(p.row) + "_" + what; }

void measure_trips(const plan& p, bench::server_process& server, bench::clients& all,
                   std::int64_t connections) {
  all.open(connections);
  // Compilers at run time, caches and free lists have seen everything once.
  all.run(p.trips / 5);
  const double cpu = server.cpu_nanoseconds();
  const bench::clock::time_point start = bench::clock::now();
  all.run(p.trips);
  const double wall = bench::nanoseconds_since(start);
  const double each = 1e3 * static_cast<double>(p.trips);
  report(row_name(p, "trip").c_str(), connections, wall / each, "us");
  report(row_name(p, "cpu").c_str(), connections, (server.cpu_nanoseconds() - cpu) / each, "us");
  report(row_name(p, "p50").c_str(), connections, all.times().percentile(0.50), "us");
  report(row_name(p, "p99").c_str(), connections, all.times().percentile(0.99), "us");
}

// Each connection has had an answer, so whatever a server makes for the first request is there.
void measure_memory(const plan& p, bench::server_process& server, bench::clients& all,
                    std::int64_t connections) {
  constexpr std::int64_t first = 100;
  all.open(first);
  const std::int64_t before = server.bytes_in_use();
  all.open(first + connections);
  report(row_name(p, "bytes").c_str(), connections,
         static_cast<double>(server.bytes_in_use() - before) / static_cast<double>(connections),
         "B");
}

template <class Trips>
void measure_tls(const plan& p, bench::server_process& server, std::int64_t connections,
                 Trips trips) {
  trips(p.trips / 5);
  const double cpu = server.cpu_nanoseconds();
  const bench::clock::time_point start = bench::clock::now();
  trips(p.trips);
  const double wall = bench::nanoseconds_since(start);
  const double each = 1e3 * static_cast<double>(p.trips);
  report(row_name(p, "trip").c_str(), connections, wall / each, "us");
  report(row_name(p, "cpu").c_str(), connections, (server.cpu_nanoseconds() - cpu) / each, "us");
}

void run_tls(const plan& p, const bench::core_pair& cores, char** command, int count,
             std::int64_t connections) {
  const bench::tls_folder folder;
  bench::server_process server(command, count, p.buffer, cores.server);
  bench::core_pair::use(cores.client);
  bench::tls_clients all(folder, server.port(), p.message);
  if (p.message == 0) {
    measure_tls(p, server, connections, [&](std::int64_t n) { all.shake_hands(n); });
  } else {
    all.open(connections);
    measure_tls(p, server, connections, [&](std::int64_t n) { all.run(n); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t connections = argc < 4 ? 0 : std::atoll(argv[2]);
  if (connections <= 0) {
    std::fprintf(stderr, "usage: %s PROGRAM CONNECTIONS SERVER...\n", argv[0]);
    return 2;
  }
  const plan& p = find_plan(argv[1]);
  const bench::core_pair cores;
  bench::raise_descriptor_limit();
  if (p.tls) {
    run_tls(p, cores, argv + 3, argc - 3, connections);
    return 0;
  }
  bench::server_process server(argv + 3, argc - 3, p.buffer, p.spread ? -1 : cores.server);
  bench::core_pair::use(cores.client);
  bench::echo_protocol echo(std::max<std::size_t>(p.message, 1));
  bench::http_protocol http;
  bench::ws_protocol ws(p.message);
  bench::protocol& what = p.ws            ? static_cast<bench::protocol&>(ws)
                          : p.message > 0 ? static_cast<bench::protocol&>(echo)
                                          : http;
  bench::clients all(what, server.port());
  if (p.trips > 0) {
    measure_trips(p, server, all, connections);
  } else {
    measure_memory(p, server, all, connections);
  }
}
