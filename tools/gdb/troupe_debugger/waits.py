"""Suspended calls: what they wait for, and the coroutines in between."""

from .memory import Unreadable, walk
from .names import short_file

COROUTINES_MOST = 100_000
FORWARDED_MOST = 100
WHEELS_MOST = 1000


class Coroutine:
    def __init__(self, program, promise):
        table, memory = program.table, program.memory
        self.frame = promise - table["coroutine.frame"]
        self.resume = memory.word(self.frame)
        location = memory.word(promise + table["coroutine.awaits_at"])
        self.function, self.file, self.line = program.names.coroutine(self.resume, location)

    def place(self):
        return f"{short_file(self.file)}:{self.line}" if self.line else ""


class Call:
    """An async call: a handler that is a coroutine, a spawned task, a branch of a group, a side call."""

    def __init__(self, program, at):
        table, memory = program.table, program.memory
        self.program = program
        self.at = at
        self.cell = memory.word(at + table["async_call.actor"])
        self.awaited = memory.word(at + table["async_call.awaited"])
        self.answers = memory.word(at + table["async_call.answers"])
        self.done = memory.byte(at + table["async_call.done"]) != 0
        message = memory.word(at + table["async_call.call"])
        self.act = memory.word(message + table["message.act"])

    def handler(self):
        """What it does: a handler's name, or the coroutine of a spawned task."""
        if self.cell != 0 and self.is_task():
            coroutines = self.coroutines()
            if coroutines:
                return coroutines[-1].function
        return self.program.names.handler(self.act)

    def is_task(self):
        table, memory = self.program.table, self.program.memory
        return memory.word(self.cell + table["cell.type"]) == self.program.table.spawned_type

    def coroutines(self):
        """From the one that waits to the one that the call began with."""
        if self.awaited == 0:
            return []
        table, memory = self.program.table, self.program.memory
        found, at = [], memory.word(self.awaited + table["suspension.who"])
        while at != 0:
            found.append(Coroutine(self.program, at))
            if len(found) == COROUTINES_MOST:
                raise Unreadable(f"the coroutines of the call at {self.at:#x} do not end")
            parent = memory.word(at + table["coroutine.parent"])
            at = 0 if parent & table["coroutine.tags"] else parent
        return found

    def place(self):
        """The line of the user's code that waits: `bank.cpp:12`."""
        coroutines = self.coroutines()
        for coroutine in coroutines:
            if coroutine.line and not self.program.names.is_of_library(coroutine.file):
                return coroutine.place()
        return coroutines[0].place() if coroutines else ""

    def asker(self):
        """(the actor that asked this call, the ask's method), as far as they are known."""
        if self.answers == 0:
            return None
        table, memory = self.program.table, self.program.memory
        link = memory.word(self.answers + table["shared_state.asked"])
        if link == 0:
            return None
        return memory.word(link + table["ask_link.asker"]) or None

    def wait(self):
        return Wait(self.program, self.awaited)

    def wait_branches(self):
        """The branches for which it waits, without a look at what else it may wait for."""
        table = self.program.table
        if self.awaited == 0:
            return []
        act = self.program.memory.word(self.awaited + table["suspension.act"])
        return self.wait().branches if table.functions.get(act) in ("tasks", "stream") else []


class Wait:
    """What a suspension waits for.

    words     what a person reads
    state     the result that it waits for, or 0
    asked     the cell of the actor that gives it, or None
    branches  the calls of a group, or the side calls
    holder    of a lock: the coroutine that holds it, or 0; it may have ended
    """

    def __init__(self, program, suspension):
        table, memory = program.table, program.memory
        self.program = program
        self.state, self.asked, self.branches = 0, None, []
        self.limited, self.holder = False, 0
        if suspension == 0:
            self.words = "something that is not the library's"
            return
        act = memory.word(suspension + table["suspension.act"])
        self.limited = memory.byte(suspension + table["suspension.limited"]) != 0
        kind = table.functions.get(act)
        if kind == "future":
            self.state = memory.word(suspension + table["future_wait.of_"])
            self.words = self._of_result()
        elif kind == "tasks":
            kind_at = memory.word(suspension + table["group.kind_"])
            self.words = memory.name(memory.word(kind_at + table["group.kind_name"]))
            first = memory.word(suspension + table["group.branches_"] + table["list.first"])
            link = table["async_call.link"] + table["link.next"]
            calls = [Call(program, at) for at in walk(memory, first, lambda branch: branch + link, "branches")]
            self.branches = [branch for branch in calls if not branch.done]
        elif kind == "stream":
            self.words = "the next value of a stream"
            first = memory.word(suspension + table["side_wait.first_"])
            self.branches = [Call(program, at)
                             for at in walk(memory, first, lambda stream: stream + table["side_call.next_waited_"], "streams")]
        elif kind in ("lock", "exclusive lock", "shared lock"):
            self.words = self._of_lock(kind, suspension)
        elif kind == "I/O":
            self.words = self._of_io(suspension)
        elif kind is not None:
            self.words = {"sleep": "sleep_for", "child": "a child of its scope",
                          "parallel child": "the end of a parallel child of its scope"}.get(kind, kind)
        else:
            self.words = program.names.awaited(act)

    @classmethod
    def of_state(cls, program, state):
        """As if a suspension waited for that result."""
        wait = cls(program, 0)
        wait.state = state
        wait.words = wait._of_result()
        return wait

    def _of_result(self):
        table, memory = self.program.table, self.program.memory
        state = self.state
        # An ordinary method may have returned a future, whose result is the answer.
        for _ in range(FORWARDED_MOST):
            link = memory.word(state + table["shared_state.asked"])
            forwarded = 0 if link == 0 else memory.word(link + table["ask_link.forwarded"])
            if forwarded == 0 or memory.word(forwarded + table["shared_state.asked"]) == 0:
                break
            state = forwarded
        if link == 0:
            return "a future"
        self.state = state
        kind = memory.byte(link + table["ask_link.kind"])
        if kind == table["ask_link.job"]:
            name = memory.word(link + table["ask_link.name"])
            return "the value of " + (memory.text(name) if name != 0 else "a lazy")
        self.asked = memory.word(link + table["ask_link.asked"])
        method = memory.word(link + table["ask_link.method"])
        words = {table["ask_link.permit"]: "room in the mailbox of ",
                table["ask_link.object"]: "the object of "}.get(kind, "the answer of ")
        return words + (self.program.names.handler(method) if method != 0 else "a handler")

    def _of_lock(self, kind, suspension):
        table, memory = self.program.table, self.program.memory
        operation = memory.word(suspension + table["lock_wait.self"])
        lock = memory.word(operation + table["lock_wait.lock"])
        held = lock + table["mutex.holder" if kind == "lock" else "shared_mutex.holder"]
        words = "a shared lock" if kind == "shared lock" else "a lock"
        self.holder = memory.word(held + table["holder.by"])
        if self.holder == 0:
            return words
        method = memory.word(held + table["holder.method"])
        owner, call, _ = holder_of(self.program, self.holder)
        if owner is not None:
            self.asked = owner.cell
        if call is not None:
            words += f" held by {call.handler()}"
        elif sleeps(self.program, self.holder):
            words += f" held by the sleeping task {coroutines_from(self.program, self.holder)[-1].function}"
        else:
            words += f" held by {self.program.names.handler(method)}"
        line = self.program.names.line(memory.word(held + table["holder.at"]))
        return words + (f" since {short_file(line[0])}:{line[1]}" if line is not None else "")

    def _of_io(self, suspension):
        table, memory = self.program.table, self.program.memory
        action = table.name_of("action", memory.byte(suspension + table["operation_suspension.opcode"]))
        slot = memory.word(suspension + table["operation_suspension.at"])
        fd = memory.u32(slot + table["slot.fd"]) if slot != 0 else 0xFFFFFFFF
        return f"I/O: {action}" + (f" of descriptor {fd}" if fd < 1 << 31 else "")

    def of_whom(self):
        """The actor that it waits for: ` (#3 Account)`."""
        if self.asked is None:
            return ""
        actor = self.program.actor_at(self.asked)
        return f" ({actor})" if actor is not None else " (an actor that has gone)"


def calls_of(actor):
    """(call, the suspended call of the actor that it is a part of) of all its calls, branches too."""
    calls = [(call, call) for call in (Call(actor.program, at) for at in actor.calls())]
    for call, top in calls:
        calls += [(branch, top) for branch in call.wait_branches()]
        if len(calls) > COROUTINES_MOST:
            raise Unreadable(f"the calls of {actor} do not end")
    return calls


def holder_of(program, coroutine):
    """(actor, call, suspended call of the actor) of the coroutine that holds a lock, as far as it is known.

    It may have ended: then its memory may hold anything."""
    table, memory = program.table, program.memory
    try:
        within = memory.word(coroutine + table["coroutine.in"])
        actor = program.actor_at(memory.word(within + table["async_call.actor"]))
        if actor is not None:
            for call, top in calls_of(actor):
                if call.at == within:
                    return actor, call, top
    except Unreadable:
        pass
    return None, None, None


def next_actor(wait):
    """(the actor that this wait waits for, its suspended call that is in the way or null)."""
    program = wait.program
    if wait.holder != 0:
        actor, _, top = holder_of(program, wait.holder)
        return actor, top
    actor = program.actor_at(wait.asked) if wait.asked is not None else None
    if actor is None:
        return None, None
    calls = [Call(program, at) for at in actor.calls()]
    for call in calls:
        if call.answers == wait.state:
            return actor, call
    # The ask lies in the mailbox, behind a suspended turn.
    if calls and not actor.is_reentrant():
        return actor, calls[0]
    return actor, None


def guarded_messages(program, system):
    """(cell, message) of the messages that wait for predicates over their actors' states."""
    table, memory = program.table, program.memory
    for index in range(table["guards.bucket_count"]):
        bucket = system + table["guards.buckets"] + index * table["guards.bucket_bytes"]
        first = memory.word(bucket + table["guards.first"])
        for oldest in walk(memory, first, lambda message: message + table["guards.next_actor"], "guarded messages"):
            cell = memory.word(oldest + table["guards.of"])
            for message in walk(memory, oldest, lambda message: message + table["guards.next"], "guarded messages"):
                yield cell, message


def sleeps(program, coroutine):
    """Whether it is one of a task that sleeps without an actor."""
    table, memory = program.table, program.memory
    try:
        within = memory.word(coroutine + table["coroutine.in"])
    except Unreadable:
        return False
    return any(within == system + table["actor_system.asleep"] for system in program.systems())


def sleepers(program, system, most):
    """The calls of tasks that sleep without an actor: their innermost coroutines, at most so many."""
    table, memory = program.table, program.memory
    asleep = system + table["actor_system.asleep"]
    clock = memory.word(system + table["runtime_state.host"] + table["call_host.clock"])
    if clock == 0:
        return
    sleeps = {act for act, kind in table.functions.items() if kind == "sleep"}
    slot_bytes = 2 * 8
    lists = []
    for number in range(min(memory.u32(clock + table["timers.number_"]), WHEELS_MOST)):
        guarded = memory.word(clock + table["timers.wheels_"]) + number * table["guarded_wheel.size"]
        wheel = guarded + table["guarded_wheel.wheel_"]
        lists.append(wheel + table["wheel.due_"])
        lists += [wheel + table["wheel.slots_"] + i * slot_bytes for i in range(table["wheel.slot_count"])]
    link = table["timer.link"] + table["link.next"]
    for at in lists:
        first = memory.word(at + table["list.first"])
        for timer in walk(memory, first, lambda timer: timer + link, "timers"):
            suspension = timer - table["sleep.timer"]
            if memory.word(suspension + table["suspension.act"]) not in sleeps:
                continue
            sleeper = memory.word(suspension + table["suspension.who"])
            if sleeper == 0 or memory.word(sleeper + table["coroutine.in"]) != asleep:
                continue
            if most == 0:
                return
            most -= 1
            yield sleeper


def coroutines_from(program, promise):
    table, memory = program.table, program.memory
    found = []
    while promise != 0 and len(found) < COROUTINES_MOST:
        found.append(Coroutine(program, promise))
        parent = memory.word(promise + table["coroutine.parent"])
        promise = 0 if parent & table["coroutine.tags"] else parent
    return found
