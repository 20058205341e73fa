%% SPDX-License-Identifier: MIT
%%
%% The agent that is called and cast to: a number.
-module(counter).
-behaviour(gen_server).
-export([start/0, init/1, handle_call/3, handle_cast/2]).

start() ->
    {ok, Pid} = gen_server:start(?MODULE, 0, []),
    Pid.

init(Count) -> {ok, Count}.

handle_call({plus, N}, _From, Count) -> {reply, Count + N, Count};
handle_call(take, _From, Count) -> {reply, Count, 0}.

handle_cast({add, N}, Count) -> {noreply, Count + N}.
