// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <weir/agent.hpp>

namespace weir {

namespace detail {

/// The setup of `n` equal agents with one mailbox; errc::invalid_argument if `n` is not positive.
agent_setup pool_setup(const agent_options& options, std::int64_t n);

}  // namespace detail

/// Several equal agents that take their messages from one mailbox: a ref to all of them.
///
/// Messages are begun in the order in which they were sent, up to `n` at a time. Each agent has an
/// object of its own, made of copies of `args`. Owned by `s` as one that `spawn_agent` makes; a
/// crash of any of them is a failure of `s`. In a handler, `self<T>()` is the whole pool. A call of
/// the pool from its own handlers is errc::call_cycle only if all of them wait for each other.
template <class T>
class agent_pool : public agent_ref<T> {
 public:
  template <class... A>
  agent_pool(scope& s, std::int64_t n, const agent_options& options, A&&... args)
      : agent_ref<T>(make(s, n, options, std::forward<A>(args)...)) {
    detail::begin_in(s, this->core(), options.site);
  }

 private:
  template <class... A>
  static agent_ref<T> make(scope& s, std::int64_t n, const agent_options& options, A&&... args) {
    s.require_open("agent_pool");
    return detail::make_agent<T>(detail::pool_setup(options, n), std::forward<A>(args)...);
  }
};

}  // namespace weir
