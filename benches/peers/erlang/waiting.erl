%% A runtime with nothing to do: idle_memory and idle_cpu.
-module(waiting).
-export([idle_memory/1, idle_cpu/1]).
-export([sleeper/2]). % for hibernate/3

%% ---- idle_memory: processes that wait, each with a number of its own

%% A process lives on without anybody holding its address, and processes() finds them all again: so there is
%% no array of handles that would have to be left out of the account. The processes hibernate, as those that
%% wait long do: it cuts their heap to what they hold, a third of what a plain receive would keep.
idle_memory(Size) ->
    Main = self(),
    Others = processes(),
    erlang:garbage_collect(),
    Before = resident_bytes(),
    spawn_sleepers(Size, Main),
    timer:sleep(1000),
    Value = (resident_bytes() - Before) / Size,
    [Sleeper ! answer || Sleeper <- processes() -- Others],
    Answers = measure:reports(Size),
    measure:line(Value, length(lists:usort(Answers))).

spawn_sleepers(0, _) ->
    ok;
spawn_sleepers(Left, Main) ->
    spawn(erlang, hibernate, [?MODULE, sleeper, [Left, Main]]),
    spawn_sleepers(Left - 1, Main).

sleeper(State, Main) ->
    receive answer -> Main ! {done, State} end.

resident_bytes() ->
    [_, Pages | _] = numbers("/proc/self/statm"),
    Pages * 4096.

%% ---- idle_cpu: one process that waits

idle_cpu(Seconds) ->
    Main = self(),
    Echo = spawn(fun() -> echo(Main) end),
    Echo ! 0,
    measure:reports(1),
    timer:sleep(500), % schedulers that spin before they sleep have their time
    %% The reading itself wakes schedulers, which spin before they sleep again. A first short sleep tells what
    %% that costs; it is not what an idle runtime uses.
    First = process_cpu_ns(),
    timer:sleep(200),
    Start = measure:now_ns(),
    Second = process_cpu_ns(),
    timer:sleep(Seconds * 1000),
    Third = process_cpu_ns(),
    Idle = max(0, (Third - Second) - (Second - First)),
    Value = Idle / (measure:now_ns() - Start) * 1000,
    Echo ! 1,
    measure:line(Value, measure:sum_of_reports(1)).

echo(Main) ->
    receive Number -> Main ! {done, Number} end,
    echo(Main).

%% CPU time of all threads in the kernel's own nanoseconds; /proc/self/stat counts in hundredths of a second.
process_cpu_ns() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    lists:sum([hd(numbers("/proc/self/task/" ++ Thread ++ "/schedstat")) || Thread <- Threads]).

%% The numbers of a one-line file. Raw, which takes a tenth of the time: reading must not be what idles.
numbers(Path) ->
    {ok, File} = file:open(Path, [read, raw]),
    {ok, Line} = file:read(File, 1000),
    ok = file:close(File),
    [list_to_integer(Text) || Text <- string:lexemes(Line, " \n")].
