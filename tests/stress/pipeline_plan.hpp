// SPDX-License-Identifier: MIT
// A random program over streams, as data: it is generated from a seed, printed, built and run, and
// what it must give is computed from it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "stress/order.hpp"

namespace fuzz {

/// What a generator awaits before it yields.
enum class awaits : std::uint8_t {
  nothing,
  yield,
  sleep,
  queue_next,
  event_wait,
  mutex_lock,
  permit,
  a_future,
  race_of_sleeps,
  any_of_sleeps,
  race_queue_sleep,
  timeout_sleep,      // in time
  timeout_too_short,  // the timeout_error is caught
  timeout_queue,      // over next() of a queue
  inner_stream,       // next() of a generator that sleeps
  timeout_inner,      // with_timeout over next() of that generator, until it gives something
  last_withdrawable = timeout_inner,
  agent_call,
  agent_send,
  timeout_call,
  timeout_call_short,  // the timeout_error is caught
  race_call_sleep,
  any_call_sleep,
  timeout_task,
  race_tasks,
  all_sleeps,
  all_calls,
  settled_task,
  scope_with_child,
  shielded,
  on_other_loop,
  blocking,
  suspended,
  count
};

struct step {
  awaits what = awaits::nothing;
  int ms = 0;
};

enum class op : std::uint8_t {
  // sources
  generator,   // steps; a: number of its first item; b: fails behind so many items, or -1
  from_queue,  // a: first item, b: items, c: capacity
  from_channel,
  from_broadcast,
  from_replay,
  from_state,
  interval,
  iota,
  from_range,
  unfold,
  once,
  empty,
  never,
  callback,
  retried,  // a generator that fails b times before it ends
  last_source = retried,
  // wrappers of one stream
  deferred,
  shared,
  passed_on,           // a generator that awaits next() of another stream
  passed_impatiently,  // the same, each next() under with_timeout
  map,
  filter,
  filter_map,
  scan,
  enumerate,
  tap,
  dedup,
  distinct,
  start_with,
  take,
  take_while,
  take_until,
  drop,
  drop_while,
  take_last,
  skip_last,
  flat_map,
  flat_map_generator,
  flat_map_concurrent,
  switch_map,
  map_async,
  map_async_failing,
  map_async_unordered,
  map_async_call,
  buffered,
  buffered_at_once,
  limit,
  chunks,
  timed_chunks,
  ready_chunks,
  sliding,
  group_by,
  buffer_wait,
  buffer_drop_oldest,
  buffer_drop_newest,
  buffer_conflate,
  conflate,
  throttle,
  debounce,
  sample,
  delay,
  timeout_each,
  timeout_each_short,
  catch_with,
  finally_plain,
  finally_task,
  last_wrapper = finally_task,
  // of several streams
  merge,
  concat,
  zip,
  combine_latest,
  race_streams,
  with_latest_from,
  count
};

/// Where a number or governor can be given.
enum class permits : std::uint8_t { number, counting, shared, any, rate, adaptive, count };

struct node {
  op what = op::empty;
  int a = 0;
  int b = 0;
  int c = 0;
  permits by = permits::number;
  std::vector<step> steps;
  std::vector<node> inputs;
};

/// How one item is asked for.
enum class pull : std::uint8_t {
  plain,
  timeout,
  race_sleep,
  any_sleep,
  race_queue,
  settled,
  next_for,
  in_child,
  in_cancelled_child,
  count
};

enum class consumer : std::uint8_t {
  pulls,  // one by one, each in a way of its own
  to_vector,
  for_each,
  for_each_task,
  count_items,
  fold,
  reduce,
  first,
  last,
  find,
  any_of,
  all_of,
  none_of,
  service,    // a background child with a sink, which a defer still needs
  broadcast,  // shared among several subscribers
  count
};

enum class ending : std::uint8_t { at_end, destroyed, closed };

struct usage {
  consumer what = consumer::pulls;
  bool governed = false;
  permits by = permits::number;
  int width = 1;
  std::vector<pull> ways;   // used in turn
  std::vector<int> pauses;  // ms before each pull, used in turn
  int patience = 1;         // ms, of those that give up
  int items = -1;           // so many, or -1: all
  ending end = ending::at_end;
  bool outside = false;   // the stream outlives the scope that pulls it
  bool hops = false;      // another scope pulls the rest
  int cancel_after = -1;  // ms, or -1: never
};

struct hostility {
  int trap_every = 0;  // 0: none
  int trap_kind = 0;
  int fuse = 0;
};

struct pipeline_plan {
  std::uint64_t seed = 0;
  node stream;
  usage use;
  hostility hostile;
  order in = order::fifo;
};

pipeline_plan make_pipeline_plan(std::uint64_t seed);
std::string to_text(const pipeline_plan& plan);

bool is_source(op what);
bool withdrawable(awaits what);
/// It has children of its own that pull, so that cancelling a pull from above changes nothing
/// below.
bool pulls_by_itself(op what);

/// How closely the items are known.
enum class known : std::uint8_t {
  exactly,      // these, in this order
  as_prefix,    // these in this order, up to some point
  as_sequence,  // some of these, in this order
  as_bag,       // these, in any order
  in_part,      // some of these, each at most as often as it is there
  as_set        // nothing but these
};

/// What a stream gives if it is pulled to its end.
struct expectation {
  std::vector<int> items;
  known how = known::exactly;
  bool ends = true;        // with a limit on time, if it is false
  bool must_fail = false;  // with an error of the program
  bool may_fail = false;   // the same
  bool may_lag = false;    // errc::lagged
  bool may_time_out = false;
  bool interruptible = false;  // a pull that is given up may end it with stream_interrupted
  bool interrupts = false;     // a stage gives up pulls of its own
};

/// The consumer cancels pulls, and pulls again.
bool gives_up(const usage& use);

expectation expect(const pipeline_plan& plan);
/// Why `got` is not what was expected, or nothing. `whole`: the stream was pulled to its end.
std::string compare(const expectation& wanted, const std::vector<int>& got, bool whole);

}  // namespace fuzz
