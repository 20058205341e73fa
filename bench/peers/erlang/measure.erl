%% SPDX-License-Identifier: MIT
%%
%% What the Erlang peers share: how they are started, the median, and the line per result. A program
%% is a module with run(Size).
-module(measure).
-export([main/1, nanoseconds_each/3, median/1, report/4, bytes_in_use/0]).

%% erl -s measure main PROGRAM SIZE
main([Program, Size]) ->
    logger:set_primary_config(level, none),
    Program:run(list_to_integer(atom_to_list(Size))),
    halt(0).

%% The median cost per item over some rounds, after one warm-up round.
nanoseconds_each(Rounds, Size, Work) ->
    Work(),
    median([nanoseconds(Work) / Size || _ <- lists:seq(1, Rounds)]).

nanoseconds(Work) ->
    Start = erlang:monotonic_time(nanosecond),
    Work(),
    erlang:monotonic_time(nanosecond) - Start.

median(Values) ->
    lists:nth(length(Values) div 2 + 1, lists:sort(Values)).

report(Row, Size, Value, Unit) ->
    io:format("~s\t~b\t~.3f\t~s~n", [Row, Size, float(Value), Unit]).

%% Bytes of private memory that this process of the operating system has touched, counted as by the
%% programs in C++.
bytes_in_use() ->
    {ok, File} = file:open("/proc/self/smaps_rollup", [read, raw]),
    {ok, Text} = file:read(File, 65536),
    ok = file:close(File),
    {match, [KiB]} = re:run(Text, "Anonymous:\\s+(\\d+) kB", [{capture, all_but_first, list}]),
    list_to_integer(KiB) * 1024.
