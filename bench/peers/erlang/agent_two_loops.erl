%% SPDX-License-Identifier: MIT
%%
%% The same game between two schedulers. Left alone, Erlang moves both processes to one scheduler;
%% the option that binds them is not documented.
-module(agent_two_loops).
-export([run/1]).

run(Size) ->
    case erlang:system_info(schedulers) of
        1 -> nothing_to_measure;
        Schedulers -> between(Schedulers, Size)
    end.

between(Schedulers, Size) ->
    Main = self(),
    Pong = spawn_opt(fun agent_ping_pong:pong/0, [{scheduler, Schedulers}]),
    spawn_opt(fun() -> Main ! {each, play(Pong, Size)} end, [{scheduler, 1}]),
    receive
        {each, Each} -> measure:report("agent_two_loops", Size, Each, "ns")
    end.

play(Pong, Size) ->
    measure:nanoseconds_each(5, Size, fun() -> agent_ping_pong:play(Pong, Size) end).
