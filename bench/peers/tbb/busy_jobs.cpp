// SPDX-License-Identifier: MIT
#include "peers/tbb/workers.hpp"
#include "support/burn.hpp"

int main(int argc, char** argv) { bench::measure_busy_jobs<bench::workers>(argc, argv); }
