%% Many actors at once: big and chameneos.
-module(crowds).
-export([big/1, chameneos/1]).

%% ---- big: each actor pings others

-define(MEMBERS, 120).

big(Pings) ->
    Main = self(),
    Crowd = list_to_tuple([spawn(fun() -> enter(Index, Pings, Main) end) || Index <- lists:seq(1, ?MEMBERS)]),
    [Member ! {crowd, Crowd} || Member <- tuple_to_list(Crowd)],
    Start = measure:now_ns(),
    [Member ! start || Member <- tuple_to_list(Crowd)],
    measure:reports(?MEMBERS),
    Value = measure:ns_per(Start, ?MEMBERS * Pings),
    [Member ! report || Member <- tuple_to_list(Crowd)],
    measure:line(Value, measure:sum_of_reports(?MEMBERS)).

enter(Index, Pings, Main) ->
    receive {crowd, Crowd} -> ok end,
    receive start -> ok end,
    Random = ping_somebody(Crowd, Index * 7919),
    member(Crowd, Random, Pings, 0, Main).

member(Crowd, Random, Left, Answered, Main) ->
    receive
        {ping, From} ->
            From ! pong,
            member(Crowd, Random, Left, Answered + 1, Main);
        pong when Left > 1 ->
            member(Crowd, ping_somebody(Crowd, Random), Left - 1, Answered, Main);
        pong ->
            Main ! {done, 0},
            member(Crowd, Random, 0, Answered, Main);
        report ->
            Main ! {done, Answered}
    end.

%% The next number of Park and Miller's generator, which stays a small integer; rand:uniform/1 would take
%% longer than the message.
ping_somebody(Crowd, Random) ->
    Next = Random * 16807 rem 2147483647,
    element(Next rem ?MEMBERS + 1, Crowd) ! {ping, self()},
    Next.

%% ---- chameneos: creatures meet in pairs and take a colour from both

chameneos(Meetings) ->
    Main = self(),
    Mall = spawn(fun() -> mall(Meetings, nobody) end),
    Start = measure:now_ns(),
    [spawn(fun() -> arrive(Number rem 3, Mall, Main) end) || Number <- lists:seq(1, 100)],
    Met = measure:reports(100),
    Value = measure:ns_per(Start, Meetings),
    Fairness = lists:max(Met) / max(lists:min(Met), 1),
    measure:line(Value, lists:sum(Met) div 2, Fairness).

mall(0, Waiting) ->
    receive {ask, _, From} -> From ! stop end,
    mall(0, Waiting);
mall(Meetings, nobody) ->
    receive {ask, _, From} -> mall(Meetings, From) end;
mall(Meetings, Waiting) ->
    receive
        {ask, Colour, From} ->
            Waiting ! {meet, Colour, From},
            mall(Meetings - 1, nobody)
    end.

arrive(Colour, Mall, Main) ->
    Mall ! {ask, Colour, self()},
    creature(Colour, 0, Mall, Main).

creature(Colour, Met, Mall, Main) ->
    receive
        {meet, Other, From} ->
            Mine = complement(Colour, Other),
            From ! {change, Mine},
            Mall ! {ask, Mine, self()},
            creature(Mine, Met + 1, Mall, Main);
        {change, New} ->
            Mall ! {ask, New, self()},
            creature(New, Met + 1, Mall, Main);
        stop ->
            Main ! {done, Met}
    end.

%% Of three colours: the same if both agree, else the one neither has.
complement(Colour, Colour) -> Colour;
complement(A, B) -> 3 - A - B.
