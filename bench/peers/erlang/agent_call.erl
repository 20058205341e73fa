%% SPDX-License-Identifier: MIT
-module(agent_call).
-export([run/1]).

run(Size) ->
    measure_callers(1, Size, "call_1"),
    measure_callers(100, Size, "call_100").

measure_callers(Callers, Size, Row) ->
    Counter = counter:start(),
    Work = fun() -> together(Callers, fun() -> call(Counter, Size div Callers) end) end,
    measure:report(Row, Size, measure:nanoseconds_each(5, Size, Work), "ns"),
    gen_server:stop(Counter).

together(1, Work) -> Work();
together(Callers, Work) ->
    All = [spawn_monitor(Work) || _ <- lists:seq(1, Callers)],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- All].

call(Counter, Left) when Left > 0 ->
    Left = gen_server:call(Counter, {plus, Left}),
    call(Counter, Left - 1);
call(_, 0) -> ok.
