"""The last turns of each thread: the records of the flight recorders (docs/protocols/flight_recorder.md)."""

import heapq
import struct

import gdb

from .memory import Unreadable, WORD, walk
from .names import balanced, plain, short_file

RECORD_MOST = 1 << 22
# Records between two times, and what is between the words of one.
TIME_MOST = 256
PHASES = {0: " begins", 1: " ends", 2: ""}


class Subject:
    """What a code stands for."""

    def __init__(self, program, subjects, events, number):
        memory, table = program.memory, program.table
        at = subjects + number * table["subject.bytes"]
        self.is_known = memory.byte(at + table["subject.ready"]) != 0
        if not self.is_known:
            return
        kind = memory.byte(at + table["subject.kind"])
        name = memory.word(at + table["subject.name"])
        self.name = (memory.text(name) if name != 0 else "").replace("{anonymous}::", "").replace("(anonymous namespace)::", "")
        self.line = memory.u32(at + table["subject.line"])
        self.is_line, self.is_turn = kind == table["turn.line"], kind == table["turn.handler"]
        if self.is_turn:
            self.place = place_of(self.name)
        event = events + kind * table["event.bytes"]
        words = memory.text(memory.word(event + table["event.name"]))
        self.event = (words + " " + self.name).strip() + PHASES.get(memory.byte(event + table["event.when"]), "")
        number_name = memory.word(event + table["event.id"])
        self.number_name = memory.text(number_name) if number_name != 0 else ""


def place_of(handler):
    """Where the handler `&Account::deposit` is in the source, by the program's debug information."""
    function = plain(handler.split(" ")[0]).split("<lambda")[0]
    if not function:
        return ""
    try:
        found = gdb.decode_line(balanced(function, 0, "("))[1] or ()
    except (gdb.error, TypeError):
        return ""
    for line in found:
        if line.symtab is not None and line.line:
            return f" ({short_file(line.symtab.filename)}:{line.line})"
    return ""


class Turn:
    def __init__(self, recorder, record, ticks, is_estimate):
        self.recorder, self.ticks, self.is_estimate = recorder, ticks, is_estimate
        self.number, self.code = record

    def __lt__(self, other):
        return self.ticks > other.ticks  # newest first

    def before(self):
        """How long before the newest record, in milliseconds."""
        reader = self.recorder.reader
        if reader.rate == 0:
            return f"{'':14}"
        return f"{(reader.newest - self.ticks) * reader.rate / 1e6:11.3f}{'~' if self.is_estimate else ' '}  "

    def text(self):
        reader, table = self.recorder.reader, self.recorder.program.table
        number = self.code >> table["turn.shift"]
        subject = reader.subject(number)
        if subject.is_known and subject.is_line:
            return f"  #{self.number} waits at {short_file(subject.name)}:{subject.line}"
        if subject.is_known and not subject.is_turn:
            signed = struct.unpack("<i", struct.pack("<I", self.number))[0]
            return subject.event + (f" ({subject.number_name} {signed})" if subject.number_name else "")
        if subject.is_known:
            words = subject.name + subject.place
        else:
            words = "another handler" if number == table["turn.other"] else "the runtime's own message"
        messages = self.code & table["turn.messages_max"]
        if messages == 1:
            return f"#{self.number} {words}"
        most = " or more" if messages == table["turn.messages_max"] else ""
        return f"#{self.number} {words}, {messages} messages{most}"


class Reader:
    """What the recorders of a program have in common."""

    def __init__(self, program, subjects, events):
        self.program, self.subjects, self.events = program, subjects, events
        self.known = {}
        self.rate = 0.0  # nanoseconds a tick
        self.newest = 0

    def subject(self, number):
        if number not in self.known:
            self.known[number] = Subject(self.program, self.subjects, self.events, number)
        return self.known[number]


class Recorder:
    """The records of one thread."""

    def __init__(self, reader, at):
        self.reader, self.program = reader, reader.program
        memory, table = self.program.memory, self.program.table
        ring = at + table["flight_recorder.ring_"]
        self.thread = memory.word(at + table["flight_recorder.thread_"])
        self.name = memory.text(at + table["flight_recorder.name_"], 16)
        self.high = memory.word(at + table["flight_recorder.high_"])
        self.rate = struct.unpack("<d", memory.read(at + table["flight_recorder.rate_"], 8))[0]
        self.size = memory.word(ring + table["turn_ring.mask_"]) + 1
        self.written = memory.word(ring + table["turn_ring.written_"])
        if self.size > RECORD_MOST:
            raise Unreadable(f"the flight recorder at {at:#x} is damaged")
        self.numbers = memory.word(ring + table["turn_ring.numbers_"])
        self.codes = memory.word(ring + table["turn_ring.codes_"])
        # The next record may be half written, and lies where the oldest one was.
        self.oldest = max(0, self.written - self.size + 1)

    def record(self, index):
        slot, memory = index % self.size, self.program.memory
        return memory.u32(self.numbers + 4 * slot), memory.half(self.codes + 2 * slot)

    def kind(self, record):
        return record[1] >> self.program.table["turn.shift"]

    def running(self):
        """What the thread runs, in words; none, or one."""
        memory, table = self.program.memory, self.program.table
        if self.thread == 0:
            return []
        cell = memory.word(self.thread + table["running_state.actor"])
        act = memory.word(self.thread + table["running_state.method"])
        if act == 0 or (cell == 0 and memory.byte(self.thread + table["running_state.in_procedure"]) == 0):
            return []
        actor = self.program.actor_at(cell) if cell != 0 else None
        name = self.program.names.handler(act)
        return [f"runs {f'#{actor.number} ' if actor is not None else ''}{name}{place_of(name)}"]

    def ticks(self, record, later, high):
        """The ticks of a time; without its high part, the newest that are no later than `later`."""
        table = self.program.table
        low = record[1] & ((1 << table["turn.shift"]) - 1)
        ticks = (low << table["turn.number_bits"] | record[0]) << table["turn.tick_shift"]
        bits = table["turn.time_bits"] + table["turn.tick_shift"]
        if high is not None:
            return high << bits | ticks
        fits = later >> bits << bits | ticks
        return fits if fits <= later or fits < 1 << bits else fits - (1 << bits)

    def turns(self):
        """Its turns, newest first. Those between two times are at even distances."""
        table = self.program.table
        time, time_high = table["turn.time"], table["turn.time_high"]
        later, high, group = None, self.high, []
        for index in range(self.written - 1, self.oldest - 1, -1):
            record = self.record(index)
            if self.kind(record) == time_high:
                high = record[0]
            elif self.kind(record) == time:
                ticks = self.ticks(record, later, high)
                yield from self.spread(group, ticks, later)
                later, high, group = ticks, None, []
            else:
                group.append(record)
                if len(group) > TIME_MOST:
                    raise Unreadable(f"the flight recorder of {self.name} is damaged")
        yield from self.spread(group, later, later)

    def spread(self, group, earlier, later):
        is_open = later is None
        later = earlier if is_open else later
        if later is None:
            return
        for done, record in enumerate(group):
            ticks = later - (later - earlier) * done // len(group)
            yield Turn(self, record, ticks, is_open or done != 0)

    def newest(self):
        """The ticks of its newest time."""
        for index in range(self.written - 1, self.oldest - 1, -1):
            record = self.record(index)
            if self.kind(record) == self.program.table["turn.time"]:
                return self.ticks(record, None, self.high)
        return 0


def recorders(program):
    memory, table = program.memory, program.table
    first = memory.word(table.behind)
    if first == 0:
        return []
    reader = Reader(program, memory.word(table.behind + WORD), memory.word(table.behind + 2 * WORD))
    found = [Recorder(reader, at) for at in
             walk(memory, memory.word(first), lambda at: at + table["flight_recorder.next_"], "flight recorders", 10_000)]
    reader.rate = max((recorder.rate for recorder in found), default=0.0)
    return found


def last_turns(all_recorders):
    """The turns of all threads, newest first."""
    for recorder in all_recorders:
        recorder.reader.newest = max(recorder.reader.newest, recorder.newest())
    return heapq.merge(*(recorder.turns() for recorder in all_recorders))
