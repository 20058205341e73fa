// SPDX-License-Identifier: MIT
// The public face of a simulated network. In a dead world every call does nothing.
#include <weir/sim/network.hpp>

#include <string>

#include <weir/error.hpp>

#include "core/loop.hpp"
#include "sim/network.hpp"

namespace weir::sim {

namespace {

void check_rate(const char* name, double rate) {
  if (rate >= 0 && rate <= 1) return;  // both comparisons are false for NaN
  detail::raise(errc::invalid_argument, std::string("network_faults: .") + name + " is " +
                                            std::to_string(rate) + "; a rate is from 0 to 1");
}

void check_time(const char* name, duration d) {
  if (d >= duration::zero()) return;
  detail::raise(errc::invalid_argument, std::string("network_faults: .") + name + " is " +
                                            std::to_string(d.count()) +
                                            " ns; a duration is 0 or more");
}

void check_host(const detail::network_state& state, const char* call, std::string_view name) {
  if (state.has_host(name)) return;
  detail::raise(errc::invalid_argument, std::string("network: ") + call + " of '" +
                                            std::string(name) +
                                            "', which is no loop of this world; hosts are the "
                                            "names of loops, and 'main'");
}

}  // namespace

void network::set(const network_faults& faults) {
  if (detail::in_dead_world()) return;
  check_time("latency", faults.latency);
  check_time("jitter", faults.jitter);
  check_rate("loss", faults.loss);
  check_rate("duplicate", faults.duplicate);
  state_->set(faults);
}

void network::partition(std::string_view a, std::string_view b) {
  if (detail::in_dead_world()) return;
  check_host(*state_, "partition", a);
  check_host(*state_, "partition", b);
  if (a == b)
    detail::raise(errc::invalid_argument, "network: partition of '" + std::string(a) +
                                              "' from itself; give two different loops");
  state_->partition(a, b);
}

void network::heal() {
  if (!detail::in_dead_world()) state_->heal();
}

void network::reset(std::string_view a, std::string_view b) {
  if (detail::in_dead_world()) return;
  check_host(*state_, "reset", a);
  check_host(*state_, "reset", b);
  state_->reset(a, b);
}

}  // namespace weir::sim
