// SPDX-License-Identifier: MIT
#include <weir/durable/engine.hpp>

#include "durable/engine_core.hpp"

namespace weir::durable {

std::string_view to_string(run_state state) noexcept {
  constexpr std::string_view words[] = {"running",   "suspended", "blocked",
                                        "completed", "failed",    "cancelled"};
  return words[static_cast<std::size_t>(state)];
}

namespace {

task<> serve(std::shared_ptr<weir::detail::engine_core> core) { co_await core->serve(); }

// The service must have begun: steps run in its scope.
task<> open_when_served(std::shared_ptr<weir::detail::engine_core> core) {
  co_await core->service_begun();
  core->open();
}

task<> close_and_join(weir::detail::engine_core& core, const child<void>& service) {
  core.ask_to_close();
  co_await service;
}

}  // namespace

engine::engine(scope& s, engine_options options, std::source_location site)
    : core_(std::make_shared<weir::detail::engine_core>(weir::detail::engine_setup(options))),
      service_(s.background(serve(core_), {.name = "durable engine"}, site)) {}

engine::~engine() = default;

void engine::add_handler(std::string_view name,
                         std::shared_ptr<const weir::detail::handler_base> handler, int version) {
  core_->add_handler(name, std::move(handler), version);
}

void engine::add_object(std::string_view name, std::initializer_list<object_handler> handlers,
                        handler_options options, std::source_location site) {
  require_outside(site);
  core_->require_object_name(name, handlers);
  for (const object_handler& h : handlers)
    add_handler(std::string(name).append("/").append(h.name()), h.code(), options.version);
}

task<> engine::open(std::source_location site) {
  require_outside(site);
  return open_when_served(core_);
}

task<> engine::close(std::source_location site) {
  require_outside(site);
  return close_and_join(*core_, service_);
}

task<weir::detail::begun_run> engine::begin(std::string_view handler, const start_options& options,
                                            std::string input) {
  weir::detail::run_request request;
  request.handler = handler;
  request.input = std::move(input);
  request.id = options.id;
  request.key = options.key;
  request.idempotency = options.idempotency;
  struct coroutine {
    static task<weir::detail::begun_run> run(std::shared_ptr<weir::detail::engine_core> core,
                                             weir::detail::run_request r) {
      core->require_open("start");
      if (core->lacks_room()) co_await core->find_room();
      auto begun = core->begin_run(std::move(r));
      weir::detail::begun_run made{core->hold(begun.number), std::move(begun.id)};
      co_await core->durable(begun.lsn);
      co_return made;
    }
  };
  return coroutine::run(core_, std::move(request));
}

task<bool> engine::answer(std::string_view id, bool ok, std::string text) {
  struct coroutine {
    static task<bool> run(std::shared_ptr<weir::detail::engine_core> core, std::string to,
                          bool good, std::string value) {
      core->require_open(good ? "resolve" : "reject");
      if (core->lacks_room()) co_await core->find_room();
      const auto done = core->resolve(to, good, std::move(value));
      co_await core->durable(done.lsn);
      co_return done.first;
    }
  };
  return coroutine::run(core_, std::string(id), ok, std::move(text));
}

task<bool> engine::send_signal(std::string_view id, std::string_view name, std::string value) {
  struct coroutine {
    static task<bool> run(std::shared_ptr<weir::detail::engine_core> core, std::string to,
                          std::string what, std::string text) {
      core->require_open("signal");
      if (core->lacks_room()) co_await core->find_room();
      const auto done = core->signal(to, what, std::move(text));
      co_await core->durable(done.lsn);
      co_return done.first;
    }
  };
  return coroutine::run(core_, std::string(id), std::string(name), std::move(value));
}

task<std::string> engine::fork(std::string_view run_id, std::int64_t at_step, fork_options options,
                               std::source_location site) {
  require_outside(site);
  struct coroutine {
    static task<std::string> run(std::shared_ptr<weir::detail::engine_core> core, std::string of,
                                 std::int64_t step, std::string id) {
      core->require_open("fork");
      if (core->lacks_room()) co_await core->find_room();
      while (!core->is_durable(core->end_of_known(of)))
        co_await core->durable(core->end_of_known(of));
      const auto begun = core->fork(of, step, id);
      co_await core->durable(begun.lsn);
      co_return begun.id;
    }
  };
  return coroutine::run(core_, std::string(run_id), at_step, std::string(options.id));
}

task<> engine::restart(std::string_view run_id, std::source_location site) {
  require_outside(site);
  struct coroutine {
    static task<> run(std::shared_ptr<weir::detail::engine_core> core, std::string of) {
      core->require_open("restart");
      if (core->lacks_room()) co_await core->find_room();
      while (!core->is_durable(core->end_of_known(of)))
        co_await core->durable(core->end_of_known(of));
      co_await core->durable(core->restart(of));
    }
  };
  return coroutine::run(core_, std::string(run_id));
}

task<> engine::skip(std::string_view run_id, std::string_view message, std::source_location site) {
  require_outside(site);
  struct coroutine {
    static task<> run(std::shared_ptr<weir::detail::engine_core> core, std::string of,
                      std::string why) {
      core->require_open("skip");
      if (core->lacks_room()) co_await core->find_room();
      co_await core->durable(core->skip(of, why));
    }
  };
  return coroutine::run(core_, std::string(run_id), std::string(message));
}

task<replay_report> engine::replay_runs(const char* what, std::string run_id) {
  struct coroutine {
    static task<replay_report> run(std::shared_ptr<weir::detail::engine_core> core,
                                   const char* call, std::string id) {
      co_return core->look_at_runs(call, id);
    }
  };
  return coroutine::run(core_, what, std::move(run_id));
}

task<replay_report> engine::verify(std::source_location site) {
  require_outside(site);
  return replay_runs("verify", {});
}

task<replay_report> engine::replay(std::string_view run_id, std::source_location site) {
  require_outside(site);
  return replay_runs("replay", std::string(run_id));
}

std::optional<run_info> engine::get(std::string_view id, std::source_location site) const {
  require_outside(site);
  return core_->get(id);
}
std::vector<run_info> engine::list(list_options options, std::source_location site) const {
  require_outside(site);
  return core_->list(options);
}
bool engine::cancel(std::string_view id, std::string_view why, std::source_location site) {
  require_outside(site);
  return core_->cancel(id, why);
}
subscription<run_event> engine::events(std::source_location site) {
  require_outside(site);
  return core_->events();
}

}  // namespace weir::durable
