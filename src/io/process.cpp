// SPDX-License-Identifier: MIT
#include <weir/io/process.hpp>

#include <array>

#include <weir/combinators.hpp>
#include <weir/error.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"
#include "io/process_core.hpp"

namespace weir::io {

namespace {

using core_pointer = std::shared_ptr<detail::process_core>;

constexpr std::size_t piece_size = 16 * 1024;

task<exit_status> wait_for_end(core_pointer core) {
  co_await core->ended().wait();
  co_return core->child().status();
}

using output = detail::stream_core& (detail::process_core::*)() noexcept;

stream<std::string> pieces_of(core_pointer core, output which) {
  detail::stream_core& from = (core.get()->*which)();
  for (;;) {
    std::string piece(piece_size, '\0');
    const std::size_t got = co_await detail::pending<detail::read_some_wait>(
        {&from, std::as_writable_bytes(std::span(piece))});
    if (got == 0) co_return;
    piece.resize(got);
    co_yield std::move(piece);
  }
}

/// One `run`: its output, and how much of it may come.
class collector {
 public:
  collector(const command& what, const process_options& options) noexcept
      : what_(what), options_(options), room_(static_cast<std::uint64_t>(options.max_output)) {}

  task<exit_status> run(scope& s) {
    const core_pointer core = detail::process_core::start(s, what_, options_, false);
    co_await all(collect(core->out(), out), collect(core->err(), err), core->ended().wait());
    co_return core->child().status();
  }

  std::string out;
  std::string err;

 private:
  task<> collect(detail::stream_core& from, std::string& into) {
    std::string piece(piece_size, '\0');
    const auto buffer = std::as_writable_bytes(std::span(piece));
    while (const std::size_t got =
               co_await detail::pending<detail::read_some_wait>({&from, buffer})) {
      if (got > room_)
        detail::raise(errc::too_large, "process '" + what_.program() + "' has written more than " +
                                           std::to_string(options_.max_output) +
                                           " bytes; raise max_output, or spawn it and read its "
                                           "streams");
      room_ -= got;
      into.append(piece, 0, got);
    }
  }

  const command& what_;
  process_options options_;
  std::uint64_t room_;
};

task<process_result> run_command(command what, process_options options) {
  detail::require_processes(what, options);
  collector c(what, options);
  auto body = [&](scope& s) { return c.run(s); };
  const std::string name = "run " + what.program();
  const exit_status how = co_await with_scope({.name = name, .grace = duration::max()}, body);
  co_return process_result(how, std::move(c.out), std::move(c.err));
}

}  // namespace

task<process_result> process::run(const command& what, process_options options) {
  return run_command(what, options);
}
task<process_result> process::run(command&& what, process_options options) {
  return run_command(std::move(what), options);
}

process process::spawn(scope& s, const command& what, process_options options) {
  return process(detail::process_core::start(s, what, options, true));
}

process::process(core_pointer core) noexcept : core_(std::move(core)) {}
process::~process() = default;

detail::process_core& process::use(const char* what) const {
  if (core_ == nullptr)
    detail::raise(errc::closed, std::string(what) + ": the process object was moved from");
  core_->child().require_home("process");
  return *core_;
}

detail::stream_core* process::input() const { return use("write").in(); }

int process::pid() const {
  if (core_ == nullptr) detail::raise(errc::closed, "pid: the process object was moved from");
  return core_->child().pid();
}

void process::close_input() { use("close_input").close_input(); }

stream<std::string> process::out() {
  use("out");
  return pieces_of(core_, &detail::process_core::out);
}
stream<std::string> process::err() {
  use("err");
  return pieces_of(core_, &detail::process_core::err);
}

task<exit_status> process::wait() {
  use("wait");
  return wait_for_end(core_);
}

}  // namespace weir::io
