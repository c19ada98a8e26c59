%% One message after another: ping_pong, counting, the two fork-joins and the rings.
-module(streams).
-export([ping_pong/1, counting/1, fork_join_throughput/1, fork_join_create/1, thread_ring/2]).

%% ---- ping_pong: the number goes there and back, one more each time

ping_pong(Rounds) ->
    Main = self(),
    Pong = spawn(fun ponger/0),
    Start = measure:now_ns(),
    spawn(fun() -> pinger(Rounds, 0, Pong, Main) end),
    Check = measure:sum_of_reports(1),
    measure:line(measure:ns_per(Start, Rounds), Check).

ponger() ->
    receive {From, Number} -> From ! Number + 1 end,
    ponger().

pinger(0, Number, _, Main) ->
    Main ! {done, Number};
pinger(RoundsLeft, Number, Pong, Main) ->
    Pong ! {self(), Number},
    receive Next -> pinger(RoundsLeft - 1, Next, Pong, Main) end.

%% ---- counting: one sender, one counter

counting(Size) ->
    Main = self(),
    Counter = spawn(fun() -> counter(0, Size, Main) end),
    Start = measure:now_ns(),
    spawn(fun() -> producer(Size, Counter) end),
    Check = measure:sum_of_reports(1),
    measure:line(measure:ns_per(Start, Size), Check).

counter(Size, Size, Main) ->
    Main ! {done, Size};
counter(Count, Size, Main) ->
    receive count -> counter(Count + 1, Size, Main) end.

producer(0, _) ->
    ok;
producer(Left, Counter) ->
    Counter ! count,
    producer(Left - 1, Counter).

%% ---- fork_join_throughput: one sender, 60 counters, round robin

fork_join_throughput(Rounds) ->
    Main = self(),
    Counters = [spawn(fun() -> counter(0, Rounds, Main) end) || _ <- lists:seq(1, 60)],
    Start = measure:now_ns(),
    spawn(fun() -> round_robin(Rounds, Counters) end),
    Check = measure:sum_of_reports(60),
    measure:line(measure:ns_per(Start, 60 * Rounds), Check).

round_robin(0, _) ->
    ok;
round_robin(RoundsLeft, Counters) ->
    [Counter ! count || Counter <- Counters],
    round_robin(RoundsLeft - 1, Counters).

%% ---- fork_join_create: a process is spawned, receives one message and ends

fork_join_create(Size) ->
    Main = self(),
    Start = measure:now_ns(),
    spawn(fun() -> parent(Size, Main) end),
    Check = count_handled(0, Size),
    measure:line(measure:ns_per(Start, Size), Check).

parent(0, _) ->
    ok;
parent(Left, Main) ->
    Child = spawn(fun() -> receive count -> Main ! handled end end),
    Child ! count,
    parent(Left - 1, Main).

count_handled(Size, Size) -> Size;
count_handled(Count, Size) -> receive handled -> count_handled(Count + 1, Size) end.

%% ---- thread_ring: one token, handed on until its hops are used up

thread_ring(Members, Hops) ->
    Main = self(),
    First = spawn(fun() -> receive {next, Next} -> member(0, Next, Main) end end),
    AddBefore = fun(Index, Next) -> spawn(fun() -> member(Index, Next, Main) end) end,
    Second = lists:foldl(AddBefore, First, lists:seq(Members - 1, 1, -1)),
    First ! {next, Second},
    First ! Members, % once round, so that all wait before the clock starts
    measure:reports(1),
    Start = measure:now_ns(),
    First ! Hops,
    [Last] = measure:reports(1),
    Value = measure:ns_per(Start, Hops),
    measure:line(Value, case Hops rem Members of Last -> Hops; _ -> 0 end).

member(Index, Next, Main) ->
    receive
        0 -> Main ! {done, Index};
        HopsLeft -> Next ! HopsLeft - 1
    end,
    member(Index, Next, Main).
