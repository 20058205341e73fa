// SPDX-License-Identifier: MIT
// The promises of pools, `on` and `blocking` in many orders; ../planted/check.cmake links this with
// copies of the library in which a defect was planted, to see that the simulation finds it.
//
// Status: 0 if every promise holds, 1 if the simulation says that one does not, 2 if a program only
// died or hung.
#include "planted/probe_main.hpp"
#include "toolkit/promise_list.hpp"

namespace {

constexpr unsigned limit_s = 15;

#define WEIR_PROGRAM(name) {#name, probe::explored<pool_promises::name>},
constexpr probe::program programs[] = {PROMISES(WEIR_PROGRAM)};

}  // namespace

int main() { return probe::outcome_of(programs, limit_s); }
