// SPDX-License-Identifier: MIT
//
// What the C++ servers of io_load share: their arguments, and how they say where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace bench {

constexpr int backlog = 1024;
constexpr std::int64_t most_connections = 100'000;

/// PORT (0: any) and the size of the BUFFER that each connection has.
struct server_arguments {
  server_arguments(int argc, char** argv) {
    if (argc != 3 || std::atoi(argv[1]) < 0 || std::atoi(argv[1]) > 65535 ||
        std::atoi(argv[2]) <= 0) {
      std::fprintf(stderr, "usage: %s PORT BUFFER\n", argv[0]);
      std::exit(2);
    }
    port = std::atoi(argv[1]);
    buffer = static_cast<std::size_t>(std::atoi(argv[2]));
  }

  int port;
  std::size_t buffer;
};

/// Tells io_load where the server listens.
inline void announce(int port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
}

}  // namespace bench
