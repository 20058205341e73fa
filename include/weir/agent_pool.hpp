// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <weir/agent.hpp>

namespace weir {

namespace detail {

/// The setup of `n` identical agents with one mailbox; errc::invalid_argument if `n` is not
/// positive.
agent_setup pool_setup(const agent_options& options, std::int64_t n);

}  // namespace detail

/// A pool of identical agents with one mailbox: a ref to all of them.
///
/// Messages are started in the order sent, up to `n` at a time. Each agent has its own object,
/// constructed from copies of `args`. `s` owns them as if made by `spawn_agent`; a crash of any of
/// them is a failure of `s`. In a handler, `self<T>()` is the whole pool. A handler's call to its
/// own pool is errc::call_cycle only if all of the pool's agents wait for each other.
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
