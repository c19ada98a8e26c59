%% The benchmarks in Erlang: an actor is a process. ../../README.md says what each measures.
%%
%%   erl -noshell +S WORKERS:WORKERS +P 10000000 -run actors main BENCH WORKERS [SIZE]
%%
%% The number of schedulers is an argument of the emulator, so WORKERS is not looked at here. Processes are
%% preempted and mailboxes unbounded, so that senders just loop.
-module(actors).
-export([main/1]).

main([Bench, _Workers | Size]) ->
    {Default, Run} = benchmark(Bench),
    Line = Run(case Size of [] -> Default; [Text] -> list_to_integer(Text) end),
    io:format("~s~n", [Line]),
    halt(0).

benchmark("ping_pong") -> {2000000, fun streams:ping_pong/1};
benchmark("counting") -> {10000000, fun streams:counting/1};
benchmark("fork_join_throughput") -> {100000, fun streams:fork_join_throughput/1};
benchmark("fork_join_create") -> {1000000, fun streams:fork_join_create/1};
benchmark("thread_ring_100") -> {2000003, fun(Hops) -> streams:thread_ring(100, Hops) end};
benchmark("thread_ring_10000") -> {2000003, fun(Hops) -> streams:thread_ring(10000, Hops) end};
benchmark("big") -> {20000, fun crowds:big/1};
benchmark("chameneos") -> {1000000, fun crowds:chameneos/1};
benchmark("idle_memory") -> {5000000, fun waiting:idle_memory/1};
benchmark("idle_cpu") -> {10, fun waiting:idle_cpu/1};
benchmark("ask") -> {2000000, fun asks:ask/1};
benchmark("ask_chain") -> {40000, fun asks:ask_chain/1};
benchmark(Unknown) ->
    io:format(standard_error, "no such bench: ~s~n", [Unknown]),
    halt(2).
