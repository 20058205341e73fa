%% SPDX-License-Identifier: MIT
%%
%% A process that hibernates holds the least that a process can. It counts itself before, because
%% nothing tells when it has; a counter, as a million messages would burden the heap of who waits.
-module(agent_idle).
-export([run/1, wait/0]).

run(Size) ->
    spawn_idle(1),
    Before = measure:bytes_in_use(),
    Start = erlang:monotonic_time(nanosecond),
    spawn_idle(Size),
    Took = erlang:monotonic_time(nanosecond) - Start,
    timer:sleep(100),
    measure:report("agent_spawn", Size, Took / Size, "ns"),
    measure:report("agent_bytes", Size, (measure:bytes_in_use() - Before) / Size, "B").

spawn_idle(Size) ->
    Ready = counters:new(1, [write_concurrency]),
    spawn_all(Ready, Size),
    await_all(Ready, Size).

spawn_all(_, 0) -> ok;
spawn_all(Ready, Left) ->
    spawn(fun() -> counters:add(Ready, 1, 1), erlang:hibernate(?MODULE, wait, []) end),
    spawn_all(Ready, Left - 1).

await_all(Ready, Size) ->
    case counters:get(Ready, 1) of
        Size -> ok;
        _ -> erlang:yield(), await_all(Ready, Size)
    end.

wait() -> receive stop -> ok end.
