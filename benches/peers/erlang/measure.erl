%% What the benchmarks measure with, and the line they print.
-module(measure).
-export([now_ns/0, ns_per/2, line/2, line/3, reports/1, sum_of_reports/1]).

now_ns() -> erlang:monotonic_time(nanosecond).

ns_per(Start, Operations) -> (now_ns() - Start) / Operations.

line(Value, Check) -> io_lib:format("value=~.4f check=~b", [float(Value), Check]).
line(Value, Check, Fairness) -> [line(Value, Check), io_lib:format(" fairness=~.3f", [Fairness])].

%% Waits for so many messages {done, Number}.
reports(Count) -> [receive {done, Number} -> Number end || _ <- lists:seq(1, Count)].

sum_of_reports(Count) -> lists:sum(reports(Count)).
