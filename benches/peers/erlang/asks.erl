%% ask: one process asks another, and waits for the answer before it asks again.
%% ask_chain: each process starts and asks the next one, and answers when that has.
-module(asks).
-export([ask/1, ask_chain/1]).

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

ask_chain(Links) ->
    Main = self(),
    Start = measure:now_ns(),
    spawn(fun() -> Main ! {done, ask_link(spawn(fun chain_link/0), Links)} end),
    Check = measure:sum_of_reports(1),
    measure:line(measure:ns_per(Start, Links), Check).

%% Ends when it has answered: nobody else asks it.
chain_link() ->
    receive
        {From, Ref, 0} -> From ! {Ref, 0};
        {From, Ref, Left} -> From ! {Ref, 1 + ask_link(spawn(fun chain_link/0), Left - 1)}
    end.

ask_link(Link, Left) ->
    Ref = make_ref(),
    Link ! {self(), Ref, Left},
    receive {Ref, Behind} -> Behind end.
