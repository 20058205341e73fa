%% SPDX-License-Identifier: MIT
-module(agent_senders).
-export([run/1]).

run(Size) ->
    measure_senders(1, Size, "senders_1"),
    measure_senders(4, Size, "senders_4"),
    measure_senders(100, Size, "senders_100").

measure_senders(Senders, Size, Row) ->
    Counter = counter:start(),
    Work = fun() -> send_all(Counter, Senders, Size) end,
    measure:report(Row, Size, measure:nanoseconds_each(5, Size, Work), "ns"),
    gen_server:stop(Counter).

%% Done when the counter has handled all of them.
send_all(Counter, Senders, Size) ->
    Each = Size div Senders,
    All = [spawn_monitor(fun() -> send(Counter, Each) end) || _ <- lists:seq(1, Senders)],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- All],
    Size = gen_server:call(Counter, take, infinity).

send(Counter, Left) when Left > 0 ->
    gen_server:cast(Counter, {add, 1}),
    send(Counter, Left - 1);
send(_, 0) -> ok.
