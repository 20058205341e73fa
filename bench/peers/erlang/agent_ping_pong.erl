%% SPDX-License-Identifier: MIT
-module(agent_ping_pong).
-export([run/1, play/2, pong/0]).

pong() ->
    receive
        {From, Value} -> From ! Value + 1, pong()
    end.

play(Pong, Left) when Left > 0 ->
    Pong ! {self(), Left},
    receive Value when is_integer(Value) -> play(Pong, Left - 1) end;
play(_, 0) -> done.

run(Size) ->
    Pong = spawn(fun pong/0),
    Each = measure:nanoseconds_each(5, Size, fun() -> play(Pong, Size) end),
    measure:report("agent_ping_pong", Size, Each, "ns").
