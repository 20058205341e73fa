// SPDX-License-Identifier: MIT
#include <weir/dump.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <ostream>
#include <vector>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/generator.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/error_notes.hpp"
#include "core/function_name.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

namespace {

constexpr std::size_t max_indent = 32;
constexpr std::size_t max_chain = 32;    // awaiting tasks shown per fiber
constexpr std::size_t max_lines = 5000;  // per loop
constexpr auto patience = std::chrono::seconds(1);

void indent(std::string& out, std::size_t depth) {
  out.append(2 * std::min(depth, max_indent), ' ');
}

const char* kind_name(region_kind kind) noexcept {
  switch (kind) {
    case region_kind::timeout:
      return "time limit";
    case region_kind::token:
      return "with_token";
    case region_kind::shield:
      return "shield";
    case region_kind::cleanup:
      return "cleanup";
    case region_kind::settle:
      return "settle";
    case region_kind::local:
      return "with_local";
    case region_kind::arms:
      return "combinator";
    default:
      return "scope";
  }
}

void add_state(std::string& out, const strand& s) {
  if (&s == current) {
    out.append(", running");
  } else if (!s.begun) {
    out.append(", not started");
  } else if (s.unwinding) {
    out.append(s.queued ? ", being unwound" : ", to be unwound when the children are joined");
  } else if (s.parked != nullptr && !s.needs_start) {
    out.append(", waits on ");
    dump_line line(out);
    s.parked->describe(line);
  } else {
    out.append(", ready");
  }
}

void add_chain(std::string& out, const strand& s, const std::source_location& spawned,
               std::size_t depth) {
  std::size_t shown = 0;
  for (const frame* f = s.leaf; f != nullptr; f = f->parent) {
    if (is_own_function(f->function.function_name())) continue;
    indent(out, depth);
    if (++shown > max_chain) return void(out.append("... more awaiting tasks\n"));
    out.append(shown == 1 ? "at " : "awaited at ");
    out.append(text_of(f->awaiting.line() == 0 ? f->function : f->awaiting));
    out.append(" in ").append(short_function_name(f->function.function_name())).push_back('\n');
  }
  if (shown > 0 || s.leaf == nullptr) return;
  indent(out, depth);
  out.append("at ").append(text_of(spawned)).push_back('\n');
}

void add_reason(std::string& out, const context& c) {
  if (!cancel_tree::reason(c)) return;
  out.append(", cancelled (").append(to_string(cancel_tree::reason(c)->kind));
  if (!cancel_tree::reason(c)->message.empty())
    out.append(": ").append(cancel_tree::reason(c)->message);
  out.append(")");
}

}  // namespace

void describe_fiber(std::string& out, const fiber& f, std::size_t depth) {
  indent(out, depth);
  out.append(f.driven ? "agent" : f.background && !f.hidden ? "service" : "fiber");
  dump_line(out).add_name(f.name == nullptr ? "" : f.name);
  out.append(" spawned at ").append(text_of(f.site));
  add_reason(out, f);
  add_state(out, f);
  if (f.driven) {
    dump_line line(out);
    static_cast<const driven_fiber&>(f).add_details(line);
  }
  out.push_back('\n');
  add_chain(out, f, f.site, depth + 1);
}

namespace {

void describe_generator(std::string& out, const generator_base& g, std::size_t depth) {
  indent(out, depth);
  out.append("stream");
  add_reason(out, g);
  add_state(out, g);
  out.push_back('\n');
  if (g.leaf != nullptr) add_chain(out, g, g.leaf->function, depth + 1);
}

void describe_scope(std::string& out, const scope& s, std::size_t depth) {
  indent(out, depth);
  out.append(kind_name(cancel_tree::kind(s)));
  dump_line(out).add_name(s.name());
  out.append(" #").append(std::to_string(s.id()));
  if (s.size() > 0)
    out.append(", ")
        .append(std::to_string(s.size()))
        .append(s.size() == 1 ? " child" : " children");
  add_reason(out, s);
  out.push_back('\n');
}

struct place_in_tree {
  const context* at;
  std::size_t depth;
};

/// The service that a cleanup region is joining: it is no longer in any list.
fiber* stopping_in(const context& c) noexcept {
  if (cancel_tree::kind(c) != region_kind::cleanup) return nullptr;
  fiber* service = static_cast<const grace_region&>(static_cast<const scope&>(c)).joining;
  return service == nullptr || service->ended ? nullptr : service;
}

// Pushes the direct contents of `c`, last first, so that they are printed in order.
void push_below(std::vector<place_in_tree>& open, const place_in_tree& from) {
  const context& c = *from.at;
  std::vector<place_in_tree> below;
  if (!cancel_tree::is_base(c))
    for (fiber* f = cancel_tree::first_child(static_cast<const scope&>(c)); f; f = f->following)
      below.push_back({f, from.depth + 1});
  for (entry* e = cancel_tree::entries(const_cast<context&>(c)); e != nullptr; e = e->below)
    if (e->what == entry::kind::background) below.push_back({e->service(), from.depth + 1});
  if (fiber* stopping = stopping_in(c)) below.push_back({stopping, from.depth + 1});
  for (const context* in = cancel_tree::inner(c); in != nullptr;
       in = cancel_tree::kind(*in) == region_kind::stream
                ? static_cast<const generator_base*>(in)->beside
                : nullptr)
    below.push_back({in, from.depth + 1});
  open.insert(open.end(), below.rbegin(), below.rend());
}

}  // namespace

std::vector<fiber*> fibers_of(loop& here) {
  std::vector<fiber*> found;
  std::vector<place_in_tree> open{{here.root_scope(), 0}};
  while (!open.empty()) {
    const place_in_tree next = open.back();
    open.pop_back();
    if (cancel_tree::kind(*next.at) == region_kind::fiber)
      found.push_back(const_cast<fiber*>(static_cast<const fiber*>(next.at)));
    push_below(open, next);
  }
  return found;
}

bool has_region(const scope& s, scope_id inner) {
  std::vector<place_in_tree> open{{&s, 0}};
  while (!open.empty()) {
    const place_in_tree next = open.back();
    open.pop_back();
    if (!cancel_tree::is_base(*next.at) && static_cast<const scope*>(next.at)->id() == inner)
      return true;
    push_below(open, next);
  }
  return false;
}

namespace {

/// False if `max_lines` cut it off.
bool describe_tree(std::string& out, const scope& root, std::size_t& lines) {
  std::vector<place_in_tree> open{{&root, 1}};
  while (!open.empty()) {
    const place_in_tree next = open.back();
    open.pop_back();
    if (++lines > max_lines) return false;
    if (cancel_tree::kind(*next.at) == region_kind::fiber) {
      describe_fiber(out, static_cast<const fiber&>(*next.at), next.depth);
    } else if (cancel_tree::kind(*next.at) == region_kind::stream) {
      describe_generator(out, static_cast<const generator_base&>(*next.at), next.depth);
    } else {
      describe_scope(out, static_cast<const scope&>(*next.at), next.depth);
    }
    push_below(open, next);
  }
  return true;
}

}  // namespace

std::string tree_of(loop& here) {
  std::string out;
  std::size_t lines = 0;
  if (here.root_scope() != nullptr && !describe_tree(out, *here.root_scope(), lines))
    out.append("  ... more than ").append(std::to_string(max_lines)).append("\n");
  return out;
}

namespace {

std::string counts_of(const door& of) {
  return std::to_string(of.scopes.get()) + " scopes, " + std::to_string(of.fibers.get()) +
         " fibers, " + std::to_string(of.timers.get()) + " timers\n";
}

}  // namespace

std::string dump_of(loop& here) {
  std::string out = "loop '" + here.own_door().name() + "': " + counts_of(here.own_door());
  if (here.root_scope() == nullptr) return out;
  std::size_t lines = 0;
  bool all = describe_tree(out, *here.root_scope(), lines);
  for (loop* run = here.first_inner(); all && run != nullptr; run = run->next_inner()) {
    out.append(" durable run '").append(run->seam()->run_id()).append("'\n");
    const active_loop active(*run);
    if (run->root_scope() != nullptr) all = describe_tree(out, *run->root_scope(), lines);
  }
  if (!all) out.append("  ... more than ").append(std::to_string(max_lines)).append("\n");
  return out;
}

namespace {

/// Shared by the asking thread and the asked loop.
struct dump_request {
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
  std::string text;
};

struct dump_message final : message {
  explicit dump_message(std::shared_ptr<dump_request> r) : request(std::move(r)) {}
  void deliver(loop& here) noexcept override {
    answer(dump_of(here));
    delete this;
  }
  void refuse() noexcept override {
    answer({});
    delete this;
  }
  void answer(std::string text) {
    const std::lock_guard lock(request->mutex);
    request->text = std::move(text);
    request->done = true;
    request->answered.notify_all();
  }
  std::shared_ptr<dump_request> request;
};

/// The line for a loop that did not answer.
std::string silent(const door& of) {
  return "loop '" + of.name() + "' is silent: it did not answer within a second (busy or stuck); " +
         counts_of(of);
}

std::shared_ptr<dump_request> ask_for_dump(door& other) {
  auto request = std::make_shared<dump_request>();
  other.post(*new dump_message(request));
  return request;
}

/// `here`: the loop of this thread, or null. Never an inner loop, which has no inbox.
std::string answer_of(dump_request& request, const door& other, loop* here,
                      std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(request.mutex);
  while (!request.done && std::chrono::steady_clock::now() < until) {
    // A waiting loop answers the dump requests of others, so two loops that ask each other both get
    // an answer.
    lock.unlock();
    if (here != nullptr) here->answer_dumps();
    lock.lock();
    request.answered.wait_for(lock, std::chrono::milliseconds(5), [&] { return request.done; });
  }
  return request.done ? request.text : silent(other);
}

/// The line for a simulated loop that this thread cannot ask.
std::string about_simulated(const door& d, bool in_loop) {
  if (d.thread != std::this_thread::get_id())
    return "loop '" + d.name() + "' is simulated on another thread\n";
  return in_loop ? "" : "loop '" + d.name() + "' is simulated and does not run now\n";
}

}  // namespace

// Only dump requests may be answered in the middle of a step; other messages keep their order.
void loop::answer_dumps() noexcept {
  if (host_ != nullptr) return host_->answer_dumps();  // the owner of the inbox
  message* next = door_->messages.take();
  while (next != nullptr) {
    message* m = next;
    next = m->next;
    if (auto* asked = dynamic_cast<dump_message*>(m)) {
      asked->deliver(*this);
    } else {
      *outer_->put_off_end = m;
      m->next = nullptr;
      outer_->put_off_end = &m->next;
    }
  }
}

// All loops are asked before the first answer is awaited, so any number of silent loops costs one
// second in total.
std::string dump_all() {
  loop* here = loop::here();
  if (here != nullptr && here->host() != nullptr) here = here->host();
  const std::vector<door_ref> doors = door_table::all();
  std::vector<std::shared_ptr<dump_request>> asked(doors.size());
  for (std::size_t i = 0; i < doors.size(); ++i) {
    const bool own = here != nullptr && doors[i]->serial() == here->serial();
    if (!own && !doors[i]->simulated()) asked[i] = ask_for_dump(*doors[i]);
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string out;
  for (std::size_t i = 0; i < doors.size(); ++i) {
    if (asked[i] != nullptr) {
      out.append(answer_of(*asked[i], *doors[i], here, until));
    } else if (here != nullptr && doors[i]->serial() == here->serial()) {
      out.append(here->env().dump(*here));
    } else {
      out.append(about_simulated(*doors[i], here != nullptr));
    }
  }
  return doors.empty() ? "no loop is running\n" : out;
}

}  // namespace detail

void dump(std::ostream& out) { out << detail::dump_all(); }

live_counts live() noexcept {
  live_counts sum;
  for (const detail::door_ref& d : detail::door_table::all()) {
    ++sum.loops;
    sum.scopes += d->scopes.get();
    sum.fibers += d->fibers.get();
    sum.timers += d->timers.get();
  }
  return sum;
}

}  // namespace weir
