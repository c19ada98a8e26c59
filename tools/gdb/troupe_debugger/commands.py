"""What the user types."""

import collections
import re

import gdb

from .actors import Program
from .memory import Unreadable
from .turns import last_turns, recorders
from .waits import Call, coroutines_from, guarded_messages, next_actor, sleepers

SHOWN = 100
DEPTH_MOST = 50


def guarded(invoke):
    """A command that says what is wrong instead of where the script failed."""

    def run(self, text, from_tty):
        try:
            invoke(self, text, from_tty)
        except Unreadable as problem:
            raise gdb.GdbError(f"troupe: {problem}") from None
        except gdb.GdbError:
            raise
        except RecursionError:
            raise gdb.GdbError("troupe: the program's data is nested too deep; it may be damaged") from None
        except KeyboardInterrupt:
            raise gdb.GdbError("troupe: interrupted") from None
        except Exception as problem:  # pylint: disable=broad-except
            raise gdb.GdbError(f"troupe: the program's data cannot be understood, and may be damaged: "
                               f"{type(problem).__name__}: {problem}") from None

    return run


def options_of(text, usage):
    """(how many lines at most, the rest of the words)."""
    words, most = gdb.string_to_argv(text), SHOWN
    rest = []
    while words:
        word = words.pop(0)
        if word == "-n":
            if not words or not words[0].isdigit():
                raise gdb.GdbError(usage)
            most = int(words.pop(0))
        elif word.startswith("-"):
            raise gdb.GdbError(usage)
        else:
            rest.append(word)
    return (most or float("inf")), rest


def filter_of(words, usage):
    if len(words) > 1:
        raise gdb.GdbError(usage)
    try:
        return re.compile(words[0]) if words else None
    except re.error as problem:
        raise gdb.GdbError(f"troupe: {words[0]} is no pattern: {problem}") from None


def counted(n, noun):
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def actor_of(program, words, usage):
    """The actor that the user means: a number, a ref or an address."""
    text = " ".join(words).strip()
    if not text:
        raise gdb.GdbError(usage)
    if re.fullmatch(r"#?\d+", text):
        found = program.actor_of_number(int(text.lstrip("#")))
        if not found:
            raise Unreadable(f"there is no actor {text}")
        if len(found) > 1:
            cells = ", ".join(f"{one.cell:#x}" for one in found)
            raise Unreadable(f"{counted(len(found), 'runtime')} have an actor {text}: give its address, one of {cells}")
        return found[0]
    try:
        value = gdb.parse_and_eval(text)
        address = address_of(value)
    except gdb.error as problem:
        raise Unreadable(f"{text}: {problem}") from None
    actor = program.actor_at(address)
    if actor is None:
        raise Unreadable(f"there is no actor at {address:#x}")
    return actor


def address_of(value):
    """The cell's address in a ref, or in a number or a pointer."""
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_REF:
        value = value.referenced_value()
        kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_STRUCT and (kind.tag or "").startswith("troupe::ref<"):
        return cell_in(int(value["address_"]["bits_"]))
    return int(value) & 0xFFFFFFFFFFFFFFFF


def cell_in(bits):
    """The address of the cell in the word of a ref (include/troupe/actor/cell.hpp, address)."""
    bits &= 0xFFFFFFFFFFFFFFFF
    return bits & ((1 << 48) - 1) if bits >> 63 else bits


# One line of `info troupe waits`, without the actor.
def wait_line(call):
    if call.program.memory.byte(call.at + call.program.table["async_call.busy"]) and call.awaited == 0:
        return f"in {call.handler()} runs"
    wait, place = call.wait(), call.place()
    at = f" at {place}" if place else ""
    limit = ", with a limit" if wait.limited else ""
    return f"in {call.handler()} waits{at} for {wait.words}{wait.of_whom()}{limit}"


class Actors(gdb.Command):
    """List the actors of the program: info troupe actors [-n COUNT] [CLASS]
At most COUNT of them, 100 unless it is given, 0 for all. CLASS is a pattern for the names of their
classes. The last lines count the actors of each class."""

    def __init__(self):
        super().__init__("info troupe actors", gdb.COMMAND_STATUS)

    @guarded
    def invoke(self, text, from_tty):
        usage = "Usage: info troupe actors [-n COUNT] [CLASS]"
        most, words = options_of(text, usage)
        pattern = filter_of(words, usage)
        program = Program()
        systems = program.systems()
        if not systems:
            gdb.write("troupe: there is no runtime at this moment\n")
            return
        program.running()
        for number, system in enumerate(systems, 1):
            if len(systems) > 1:
                gdb.write(f"runtime {number} of {len(systems)}\n")
            self.list(program, system, most, pattern)

    @staticmethod
    def list(program, system, most, pattern):
        counts = collections.defaultdict(collections.Counter)
        shown, total = 0, 0
        rows = []
        for slab, owner in program.slabs().items():
            if owner != system:
                continue
            for cell, number, word, kind, flags in program.cells(slab):
                name = program.class_name(kind)
                if pattern is not None and not pattern.search(name):
                    continue
                total += 1
                if word == 0 and shown >= most and cell not in program.running():
                    counts[name]["stopped" if flags & program.table["cell.stopped"] else "inactive"] += 1
                    continue
                state, mail, text = row_of(program, cell)
                counts[name][state] += 1
                if shown < most:
                    shown += 1
                    rows.append((f"#{number}", name, state, mail, text))
        print_rows(rows)
        if shown < total:
            gdb.write(f"and {total - shown:,} more; `info troupe actors -n 0` lists all\n")
        gdb.write(f"{counted(total, 'actor')}")
        for name, states in sorted(counts.items(), key=lambda one: (-sum(one[1].values()), one[0])):
            each = ", ".join(f"{n:,} {state}" for state, n in states.most_common())
            gdb.write(f"\n  {sum(states.values()):,} {name}: {each}")
        gdb.write("\n")


def row_of(program, cell):
    """(state, mail, what it does) of an actor; never raises for one that is damaged."""
    try:
        actor = program.actor_at(cell)
        if actor is None:
            return "damaged", "?", ""
        mail = actor.mail() if actor.word != 0 else []
        state = actor.state(mail)
        if state == "runs":
            return state, str(len(mail)), runs_text(program, cell)
        calls = [Call(program, at) for at in actor.calls()]
        text = "; ".join(wait_line(call) for call in calls[:3])
        if len(calls) > 3:
            text += f"; and {len(calls) - 3} more calls"
        if not calls and mail:
            text = "next " + program.names.handler(program.memory.word(mail[0][0] + program.table["message.act"]))
        return state, str(len(mail)), text
    except Unreadable as problem:
        return "damaged", "?", str(problem)


def runs_text(program, cell):
    thread, act = program.thread_of(cell), program.running()[cell][1]
    text = f"in {program.names.handler(act)}" if act != 0 else ""
    return text + (f" in thread {thread}" if thread is not None else "")


def print_rows(rows):
    if not rows:
        return
    rows = [("actor", "class", "state", "mail", "what it does")] + rows
    wide = [min(40, max(len(row[i]) for row in rows)) for i in range(3)]
    for number, name, state, mail, text in rows:
        line = f"{number:<{wide[0]}}  {name:<{wide[1]}}  {state:<{wide[2]}}  {mail:>4}  {text}"
        gdb.write(line.rstrip() + "\n")


class Waits(gdb.Command):
    """List the suspended calls of the program: info troupe waits [-n COUNT] [CLASS]
Each line says which handler of which actor waits where, and for what. Then it names cycles: actors
that wait for each other. At most COUNT lines, 100 unless it is given, 0 for all. CLASS is a pattern
for the names of the actors' classes."""

    def __init__(self):
        super().__init__("info troupe waits", gdb.COMMAND_STATUS)

    @guarded
    def invoke(self, text, from_tty):
        usage = "Usage: info troupe waits [-n COUNT] [CLASS]"
        most, words = options_of(text, usage)
        pattern = filter_of(words, usage)
        program = Program()
        systems = program.systems()
        lines, needs = 0, {}
        for number, system in enumerate(systems, 1):
            if len(systems) > 1:
                gdb.write(f"runtime {number} of {len(systems)}\n")
            lines = self.suspended(program, system, (lines, most), pattern, needs)
            lines = self.guarded(program, system, (lines, most), pattern)
            if pattern is None:
                lines = self.asleep(program, system, (lines, most))
        if lines > most:
            gdb.write(f"and {lines - most:,} more; `info troupe waits -n 0` lists all\n")
        gdb.write(f"{counted(lines, 'suspended call')}\n")
        for cycle in cycles(needs):
            names = [str(program.actor_at(cell)) for cell in cycle + cycle[:1]]
            gdb.write("a cycle: " + " waits for ".join(names) + "\n")

    # These three write what waits, up to a limit, and return how many lines there are with it.

    def suspended(self, program, system, written, pattern, needs):
        lines, most = written
        for slab, owner in program.slabs().items():
            if owner != system:
                continue
            for cell, number, word, kind, _ in program.cells(slab):
                name = program.class_name(kind)
                if word == 0 or (pattern is not None and not pattern.search(name)):
                    continue
                for line in self.calls_of(program, cell, number, name, needs):
                    lines += 1
                    if lines <= most:
                        gdb.write(line + "\n")
        return lines

    @staticmethod
    def calls_of(program, cell, number, name, needs):
        try:
            actor = program.actor_at(cell)
            calls = [Call(program, at) for at in actor.calls()] if actor is not None else []
        except Unreadable as problem:
            return [f"#{number} {name}: {problem}"]
        found = []
        for call in calls:
            try:
                found.append(f"#{number} {name} {wait_line(call)}")
                if not actor.is_reentrant():
                    asked = call.wait().asked
                    if asked is not None:
                        needs[cell] = asked
            except Unreadable as problem:
                found.append(f"#{number} {name}: {problem}")
        return found

    @staticmethod
    def guarded(program, system, written, pattern):
        lines, most = written
        for cell, message in guarded_messages(program, system):
            actor = program.actor_at(cell)
            if actor is None or (pattern is not None and not pattern.search(actor.class_name())):
                continue
            lines += 1
            if lines <= most:
                method = program.names.handler(program.memory.word(message + program.table["message.act"]))
                gdb.write(f"{actor}: {method} waits for its predicate\n")
        return lines

    @staticmethod
    def asleep(program, system, written):
        lines, most = written
        count = program.memory.word(system + program.table["actor_system.sleepers"])
        for sleeper in sleepers(program, system, max(0, most - lines)) if count != 0 else []:
            frames = coroutines_from(program, sleeper)
            place = next((f" at {coroutine.place()}" for coroutine in frames if coroutine.line), "")
            gdb.write(f"task {frames[-1].function} waits{place} for sleep_for\n")
        return lines + count


def cycles(needs):
    """The cycles of a graph in which each node has one edge at most."""
    done, found = set(), []
    for start in needs:
        way, at = {}, start
        while at in needs and at not in done and at not in way:
            way[at] = len(way)
            at = needs[at]
        if at in way:
            found.append(list(way)[way[at] :])
        done.update(way)
    return found


class Mail(gdb.Command):
    """List the messages that wait for an actor, oldest first: info troupe mail ACTOR
The ACTOR is a number, a ref or an address."""

    def __init__(self):
        super().__init__("info troupe mail", gdb.COMMAND_STATUS)

    @guarded
    def invoke(self, text, from_tty):
        usage = "Usage: info troupe mail [-n COUNT] ACTOR"
        most, words = options_of(text, usage)
        program = Program()
        actor = actor_of(program, words, usage)
        mail = actor.mail()
        for index, (message, urgent) in enumerate(mail):
            if index >= most:
                gdb.write(f"and {len(mail) - index:,} more; `info troupe mail -n 0 ...` lists all\n")
                break
            handler = program.names.handler(program.memory.word(message + program.table["message.act"]))
            gdb.write(f"{index:<3} {handler}{' (urgent)' if urgent else ''}, at {message:#x}\n")
        gdb.write(f"{actor} {actor.state(mail)}: {counted(len(mail), 'message')}\n")


class Turns(gdb.Command):
    """List the last turns, newest first: info troupe turns [-n COUNT] [HANDLER]
At most COUNT lines, 100 unless it is given, 0 for all that the flight recorders have. HANDLER is a
pattern for what a line says. The program needs a flight recorder: TROUPE_FLIGHT_RECORDER=1."""

    def __init__(self):
        super().__init__("info troupe turns", gdb.COMMAND_STATUS)

    @guarded
    def invoke(self, text, from_tty):
        usage = "Usage: info troupe turns [-n COUNT] [HANDLER]"
        most, words = options_of(text, usage)
        pattern = filter_of(words, usage)
        program = Program()
        all_recorders = recorders(program)
        if not all_recorders:
            raise Unreadable("the program has no flight recorder: start it with TROUPE_FLIGHT_RECORDER=1")
        gdb.write("   before (ms)  thread           turn\n")
        for recorder in all_recorders:
            for line in recorder.running():
                gdb.write(f"{'':15} {recorder.name:<16} {line}\n")
        shown = 0
        for turn in last_turns(all_recorders):
            line = turn.text()
            if pattern is not None and not pattern.search(line):
                continue
            if shown >= most:
                gdb.write("older ones: `info troupe turns -n 0` lists all\n")
                break
            shown += 1
            gdb.write(f"{turn.before()} {turn.recorder.name:<16} {line}\n")


class Backtrace(gdb.Command):
    """Show the suspended turn of an actor, with the chain of what it awaits: troupe backtrace ACTOR
The ACTOR is a number, a ref or an address. The innermost coroutine comes first, as in `backtrace`;
when it waits for another actor, that actor's turn follows."""

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_STACK)

    @guarded
    def invoke(self, text, from_tty):
        program = Program()
        actor = actor_of(program, gdb.string_to_argv(text), "Usage: troupe backtrace ACTOR")
        Story(program).tell(actor)


class Story:
    """A backtrace, from one actor to those that it waits for."""

    def __init__(self, program):
        self.program = program
        self.frames = 0
        self.told = set()

    def tell(self, actor):
        calls = [Call(self.program, at) for at in actor.calls()]
        if not calls:
            self.state(actor, "")
            return
        for call in calls:
            self.call(actor, call, "")

    # An actor without a suspended call.
    def state(self, actor, indent):
        state = actor.state()
        words = {"runs": f"runs now, {runs_text(self.program, actor.cell)}" if state == "runs" else "",
                 "inactive": "is inactive: it has no mail", "new": "is being constructed",
                 "queued": f"waits for a worker, with {counted(len(actor.mail()), 'message')}",
                 "idle": "has no mail", "stopped": "has stopped"}.get(state, state)
        gdb.write(f"{indent}{actor} {words}\n")
        if state == "runs":
            thread = self.program.thread_of(actor.cell)
            if thread is not None:
                gdb.write(f"{indent}  its stack: thread apply {thread} backtrace\n")

    def call(self, actor, call, indent):
        if call.at in self.told or len(self.told) == DEPTH_MOST:
            again = "which is told above: a cycle" if call.at in self.told else "and so on"
            gdb.write(f"{indent}{actor} in {call.handler()}, {again}\n")
            return
        self.told.add(call.at)
        gdb.write(f"{indent}{actor} in {call.handler()}{self.asked_by(call)}\n")
        self.chain(call, indent + "  ")

    def asked_by(self, call):
        cell = call.asker()
        asker = self.program.actor_at(cell) if cell else None
        return f", asked by {asker}" if asker is not None else ""

    # Its coroutines, then what the innermost one waits for.
    def chain(self, call, indent):
        for coroutine in call.coroutines():
            where = f" at {coroutine.file}:{coroutine.line}" if coroutine.line else ""
            gdb.write(f"{indent}#{self.frames:<3} {coroutine.function} (){where}, frame {coroutine.frame:#x}\n")
            self.frames += 1
        wait = call.wait()
        limit = ", with a limit" if wait.limited else ""
        gdb.write(f"{indent}waits for {wait.words}{wait.of_whom()}{limit}\n")
        for number, branch in enumerate(wait.branches):
            gdb.write(f"{indent}branch {number}:\n")
            self.chain(branch, indent + "  ")
        actor, their = next_actor(wait)
        if actor is None:
            return
        if their is None:
            self.state(actor, indent)
        else:
            if wait.holder == 0 and their.answers != wait.state:
                gdb.write(f"{indent}the ask waits in its mailbox, behind:\n")
            self.call(actor, their, indent)


class Prefix(gdb.Command):
    """What the other commands' names begin with; alone it lists them."""

    def __init__(self, name, kind, documentation):
        self.__doc__ = documentation
        self.name = name
        super().__init__(name, kind, gdb.COMPLETE_COMMAND, True)

    def invoke(self, text, from_tty):
        if text:
            raise gdb.GdbError(f"troupe: there is no command {self.name} {text}; see `help {self.name}`")
        gdb.execute(f"help {self.name}")


class Object(gdb.Function):
    """$troupe_object(ACTOR): the object of the actor with that number, or of that ref."""

    def __init__(self):
        super().__init__("troupe_object")

    def invoke(self, which):
        try:
            program = Program()
            kind = which.type.strip_typedefs()
            if kind.code == gdb.TYPE_CODE_INT and int(which) < 1 << 32:
                actor = actor_of(program, [str(int(which))], "")
            else:
                actor = program.actor_at(address_of(which))
            if actor is None:
                raise Unreadable("there is no such actor")
            name = program.full_class_name(actor.type)
        except Unreadable as problem:
            raise gdb.GdbError(f"troupe: {problem}") from None
        try:
            return gdb.Value(actor.object()).cast(gdb.lookup_type(name).pointer()).dereference()
        except gdb.error:
            raise gdb.GdbError(f"troupe: the program has no debug information of {name}; "
                               f"the object of {actor} lies at {actor.object():#x}") from None


def register():
    Prefix("troupe", gdb.COMMAND_STACK, "Commands for programs that use troupe.")
    Prefix("info troupe", gdb.COMMAND_STATUS, "The actors of a program that uses troupe.")
    Actors()
    Waits()
    Mail()
    Turns()
    Backtrace("troupe backtrace")
    Backtrace("info troupe turn")
    Object()
