// SPDX-License-Identifier: MIT
#include "peers/asio/bounded_pool.hpp"
#include "support/burn.hpp"

int main(int argc, char** argv) { bench::measure_busy_jobs<bench::bounded_pool>(argc, argv); }
