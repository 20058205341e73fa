// SPDX-License-Identifier: MIT
// Part of <weir/durable/engine.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include <weir/broadcast.hpp>
#include <weir/detail/durable/handler.hpp>
#include <weir/durable/awakeable.hpp>
#include <weir/durable/call.hpp>
#include <weir/durable/replay_report.hpp>
#include <weir/durable/serde.hpp>
#include <weir/durable/step.hpp>
#include <weir/duration.hpp>
#include <weir/policy/absorb.hpp>
#include <weir/scope.hpp>
#include <weir/sim/disk.hpp>

namespace weir {

namespace detail {

bool cancel_run(run_hold& run, const std::string& id, std::string_view why);
/// The encoded result of a run, when it has ended.
task<std::string> run_result(std::shared_ptr<run_hold> run, std::string id);
task<durable::replay_report> replay_exported(std::string file,
                                             std::shared_ptr<const handler_base> handler);

template <class T, class F>
struct engine_coroutine {
  static task<T> run(std::string path, std::string key, durable::engine_options options, F fn,
                     std::source_location site) {
    options.path = path;
    options.encryption_key = key;
    // The end of the scope joins the bodies of steps, which may use the engine until then.
    std::optional<durable::engine> e;
    auto body = [&](scope& s) { return inside(e, s, options, fn, site); };
    co_return co_await with_scope({.name = "with_engine"}, body, site);
  }
  static task<T> inside(std::optional<durable::engine>& e, scope& s,
                        durable::engine_options& options, F& fn, std::source_location site) {
    co_return co_await fn(e.emplace(s, options, site));
  }
};

}  // namespace detail
}  // namespace weir
