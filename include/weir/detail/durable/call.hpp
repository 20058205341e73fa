// SPDX-License-Identifier: MIT
// Part of <weir/durable/call.hpp>, which includes it after the declarations it needs.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/durable/command.hpp>
#include <weir/durable/serde.hpp>
#include <weir/duration.hpp>
#include <weir/task.hpp>

namespace weir {

namespace detail {

inline run_request request_of(std::string_view handler, std::string input,
                              const call_options& options) {
  run_request r;
  r.handler = handler;
  r.input = std::move(input);
  r.id = options.id;
  r.key = options.key;
  r.idempotency = options.idempotency;
  return r;
}

template <class T>
pending<answer_wait<T>> make_call(std::string_view handler, std::string input,
                                  const call_options& options, std::source_location site) {
  command_setup setup(require_run("call"), command_kind::call, site);
  setup.name = handler;
  setup.request = std::make_unique<run_request>(request_of(handler, std::move(input), options));
  return pending<answer_wait<T>>(std::move(setup));
}

inline task<std::string> make_send(run_request request, std::source_location site) {
  co_return require_run("send").send(std::move(request), site);
}
inline task<std::string> begin_send(std::string_view handler, std::string input,
                                    const send_options& options, std::source_location site) {
  (void)require_run("send");
  run_request r = request_of(handler, std::move(input), {options.id, options.key, {}});
  r.delay = options.delay;
  return make_send(std::move(r), site);
}

}  // namespace detail
}  // namespace weir
