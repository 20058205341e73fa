%% SPDX-License-Identifier: MIT
%%
%% A child that crashes as soon as it lives, under a supervisor of OTP. The supervisor keeps a list
%% of the restarts within its period, one second at least, and walks over it at each of them; so
%% many restarts take minutes, and are left out.
-module(agent_restart).
-behaviour(supervisor).
-export([run/1, init/1, start_child/1]).

run(Size) when Size > 10000 -> too_slow;
run(Size) ->
    Left = counters:new(1, []),
    counters:put(Left, 1, Size),
    register(waiting, self()),
    process_flag(trap_exit, true),
    Start = erlang:monotonic_time(nanosecond),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {Left, Size}),
    receive all_restarted -> ok end,
    Each = (erlang:monotonic_time(nanosecond) - Start) / Size,
    measure:report("restart_all", Size, Each, "ns"),
    exit(Supervisor, shutdown).

init({Left, Size}) ->
    Child = #{id => child, start => {?MODULE, start_child, [Left]}, shutdown => brutal_kill},
    {ok, {#{strategy => one_for_one, intensity => Size + 1, period => 1}, [Child]}}.

start_child(Left) -> {ok, spawn_link(fun() -> live(Left) end)}.

live(Left) ->
    case counters:get(Left, 1) of
        0 -> waiting ! all_restarted, receive stop -> ok end;
        _ -> counters:sub(Left, 1, 1), exit(boom)
    end.
