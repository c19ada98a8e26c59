%% ask: one process asks another, and waits for the answer before it asks again.
-module(asks).
-export([ask/1]).

ask(Times) ->
    Main = self(),
    Answerer = spawn(fun answerer/0),
    Start = measure:now_ns(),
    spawn(fun() -> asker(0, Times, Answerer, Main) end),
    Check = measure:sum_of_reports(1),
    measure:line(measure:ns_per(Start, Times), Check).

answerer() ->
    receive {From, Ref, Number} -> From ! {Ref, Number + 1} end,
    answerer().

%% What gen:call does, but for its monitor: a reference for each ask tells its answer from other mail.
asker(Times, Times, _, Main) ->
    Main ! {done, Times};
asker(Number, Times, Answerer, Main) ->
    Ref = make_ref(),
    Answerer ! {self(), Ref, Number},
    receive {Ref, Next} -> asker(Next, Times, Answerer, Main) end.
