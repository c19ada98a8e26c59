"""Runtimes, actors, their mail, and the threads that run them."""

import struct

import gdb

from .memory import Memory, Unreadable, WORD, walk
from .names import Names
from .table import Table

MAIL_MOST = 1_000_000
# Classes of actors that the library makes for itself.
INTERNAL = {"troupe::main_thread::proxy"}


class Actor:
    """One actor of a runtime, by its cell. What is read of it is read when it is asked for."""

    def __init__(self, program, cell, number, system):
        self.program = program
        self.cell = cell
        self.number = number
        self.system = system
        memory, table = program.memory, program.table
        self.word = memory.word(cell + table["cell.word"])
        self.type = memory.word(cell + table["cell.type"])
        self.flags = memory.byte(cell + table["cell.flags"])
        self._activation = None

    def __str__(self):
        return f"#{self.number} {self.class_name()}"

    def class_name(self):
        return self.program.class_name(self.type)

    def object(self):
        """The address of the object."""
        memory, table = self.program.memory, self.program.table
        if self.flags & table["cell.has_extras"]:
            adopted = memory.word(self.extras() + table["cell_extras.adopted"])
            if adopted != 0:
                return adopted
        return self.cell + 8 * memory.byte(self.cell + table["cell.offset"])

    def extras(self):
        return self.cell + self.program.table["cell.bytes"]

    def is_reentrant(self):
        return self.program.is_reentrant(self.type)

    def parent(self):
        memory, table = self.program.memory, self.program.table
        if not self.flags & table["cell.has_extras"]:
            return None
        supervision = memory.word(self.extras() + table["cell_extras.supervision"])
        parent = 0 if supervision == 0 else memory.word(supervision + table["supervision.parent"])
        return None if parent == 0 else self.program.actor_at(parent)

    def new_mail(self):
        """The messages in the mailbox word, newest first, and the activation under them (0: none)."""
        table, memory = self.program.table, self.program.memory
        at, found = self.word, []
        while at not in (0, table["mailbox.closed"]) and not at & table["mailbox.active"]:
            found.append((at & ~table["mailbox.tags"], bool(at & table["mailbox.urgent"])))
            if len(found) == MAIL_MOST:
                raise Unreadable(f"the mail of {self} does not end")
            at = memory.word(found[-1][0] + table["message.next"])
        if not at & table["mailbox.active"]:
            return found, 0
        return found, at & ~(table["mailbox.active"] | table["mailbox.parked"])

    def activation(self):
        if self._activation is None:
            self._activation = self.new_mail()[1]
            if self._activation != 0:
                owner = self.program.memory.word(self._activation + self.program.table["activation.actor"])
                if owner != self.cell:
                    raise Unreadable(f"the activation of {self} at {self._activation:#x} is another actor's")
        return self._activation

    def mail(self):
        """(message, urgent) of each message that waits, oldest first."""
        table, memory = self.program.table, self.program.memory
        newest, activation = self.new_mail()
        found = []
        if activation != 0:
            at = memory.word(activation + table["activation.oldest"])
            while at != 0:
                found.append((at & ~table["mailbox.urgent"], bool(at & table["mailbox.urgent"])))
                if len(found) == MAIL_MOST:
                    raise Unreadable(f"the mail of {self} does not end")
                at = memory.word(found[-1][0] + table["message.next"])
        return found + newest[::-1]

    def calls(self):
        """Its suspended calls."""
        table, memory = self.program.table, self.program.memory
        found = []
        activation = self.activation()
        if activation != 0:
            suspended = memory.word(activation + table["activation.suspended"])
            if suspended != 0:
                found.append(suspended)
        if self.is_reentrant() and self.flags & table["cell.has_extras"]:
            first = memory.word(self.extras() + table["cell_extras.calls"] + table["list.first"])
            found += walk(memory, first, lambda call: call + table["async_call.link"] + table["link.next"],
                          f"the calls of {self}")
        return found

    def state(self, mail=None):
        table = self.program.table
        if self.cell in self.program.running():
            return "runs"
        if self.word == 0:
            if self.flags & table["cell.stopped"]:
                return "stopped"
            return "inactive" if self.flags & table["cell.constructed"] else "new"
        if self.word == table["mailbox.closed"]:
            return "closed"
        mail = self.mail() if mail is None else mail
        if self.calls():
            return "resumes" if any(urgent for _, urgent in mail) else "waits"
        return "queued" if mail else "idle"


class Program:
    """What one command sees of the stopped program."""

    def __init__(self):
        if gdb.selected_inferior().num == 0 or not gdb.selected_inferior().threads():
            raise Unreadable("the program does not run, and there is no core file")
        self.memory = Memory()
        self.table = Table(self.memory)
        self.names = Names(self.memory)
        self.types = {}
        self._slabs = None
        self._running = None
        self._threads = None

    def systems(self):
        """The runtimes' actor systems."""
        table = self.table
        first = self.memory.word(table.systems + table["list.first"])
        link = table["actor_system.debugger_link"] + table["link.next"]
        return list(walk(self.memory, first, lambda runtime: runtime + link, "runtimes", 10_000))

    def slabs(self):
        """Each slab with its runtime: {address: actor system}."""
        if self._slabs is None:
            table, memory = self.table, self.memory
            self._slabs = {}
            link = table["slab.link"] + table["link.next"]
            for system in self.systems():
                for kind in ("slot_space.slabs_", "slot_space.alone_"):
                    first = memory.word(system + table["actor_system.slots"] + table[kind] + table["list.first"])
                    for slab in walk(memory, first, lambda slab: slab + link, "slabs"):
                        self._slabs[slab] = system
        return self._slabs

    def cells(self, slab):
        """(cell, number, mailbox word, type, flags) of each actor in a slab."""
        table, memory = self.table, self.memory
        size = memory.word(slab + table["slab.slot_bytes"])
        carved = memory.word(slab + table["slab.carved"])
        first = table["slab.first_slot"]
        alone = memory.word(slab + table["slab.size_class"]) == table["slab.alone"]
        if size < table["cell.bytes"] or (not alone and first + size * carved > table["slab.bytes"]):
            raise Unreadable(f"the slab of actors at {slab:#x} is damaged")
        number = memory.word(slab + table["slab.number"]) * table["slab.slots_max"] + 1
        count = 1 if alone else carved
        head = table["cell.bytes"]
        data = memory.read(slab, first + (head if alone else size * count))
        word, kind, flags = table["cell.word"], table["cell.type"], table["cell.flags"]
        word_at, type_at = struct.Struct(f"<{word}xQ").unpack_from, struct.Struct(f"<{kind}xQ").unpack_from
        for index in range(count):
            at = first + index * size
            its_type = type_at(data, at)[0]
            if its_type != 0 and self.class_name(its_type) not in INTERNAL:
                yield slab + at, number + index, word_at(data, at)[0], its_type, data[at + flags]

    def number_of(self, cell):
        """The number of the actor; null when no slot in use begins there."""
        table, memory = self.table, self.memory
        slab = cell & ~(table["slab.bytes"] - 1)
        if slab not in self.slabs():
            return None
        size = memory.word(slab + table["slab.slot_bytes"])
        offset = cell - slab - table["slab.first_slot"]
        alone = memory.word(slab + table["slab.size_class"]) == table["slab.alone"]
        index = 0 if alone else offset // size if size != 0 else -1
        if offset < 0 or size == 0 or (alone and offset != 0) or offset % size != 0:
            return None
        if not alone and index >= memory.word(slab + table["slab.carved"]):
            return None
        if memory.word(cell + table["cell.type"]) == 0:
            return None
        return memory.word(slab + table["slab.number"]) * table["slab.slots_max"] + index + 1

    def actor_at(self, cell):
        """The actor whose cell lies there; null when there is none."""
        number = self.number_of(cell)
        if number is None:
            return None
        return Actor(self, cell, number, self.slabs()[cell & ~(self.table["slab.bytes"] - 1)])

    def actor_of_number(self, number):
        """The actors with this number; more than one when there are several runtimes."""
        table, found = self.table, []
        for slab in self.slabs():
            first = self.memory.word(slab + table["slab.number"]) * table["slab.slots_max"] + 1
            if not first <= number < first + table["slab.slots_max"]:
                continue
            size = self.memory.word(slab + table["slab.slot_bytes"])
            actor = self.actor_at(slab + table["slab.first_slot"] + (number - first) * size)
            if actor is not None:
                found.append(actor)
        return found

    def _type(self, at):
        found = self.types.get(at)
        if found is None:
            try:
                name = self.memory.name(self.memory.word(at + self.table["cell_type.name"]))
                reentrant = self.memory.byte(at + self.table["cell_type.reentrant"]) != 0
            except Unreadable:
                name, reentrant = f"<damaged class at {at:#x}>", False
            found = self.types[at] = (name.replace("{anonymous}::", "").replace("(anonymous namespace)::", ""),
                                      reentrant, name)
        return found

    def class_name(self, at):
        return self._type(at)[0]

    def full_class_name(self, at):
        return self._type(at)[2].replace("{anonymous}", "(anonymous namespace)")

    def is_reentrant(self, at):
        return self._type(at)[1]

    def running(self):
        """What the threads run: {cell: (the thread's running_state, the handler's function)}."""
        if self._running is None:
            self._running = {}
            try:
                table, memory = self.table, self.memory
                for state in self._states():
                    cell = memory.word(state + table["running_state.actor"])
                    if cell != 0:
                        self._running[cell] = (state, memory.word(state + table["running_state.method"]))
            except Unreadable as problem:
                gdb.write(f"troupe: what the threads run is not known: {problem}\n")
        return self._running

    def _states(self):
        table, memory = self.table, self.memory
        if table.threads == 0:
            return []
        link = table["running_state.link"] + table["link.next"]
        first = memory.word(table.threads + table["list.first"])
        return list(walk(memory, first, lambda thread: thread + link, "threads", 100_000))

    def thread_of(self, cell):
        """The number for GDB of the thread that runs the actor; null when it is not known.

        Not for pretty printers: it selects other threads for a moment."""
        if self._threads is None:
            self._threads = threads_of(self._states())
        return self._threads.get(self.running()[cell][0])


def threads_of(states):
    """Which of GDB's threads a thread-local variable belongs to. All copies of one that lie in static
    thread-local memory have the same distance from their thread's pointer; so the distance that occurs
    most often is the right one."""
    pointers = {}
    selected = gdb.selected_thread()
    frame = None
    try:
        frame = gdb.selected_frame()
    except gdb.error:
        pass
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                pointers[int(gdb.parse_and_eval("(unsigned long)$fs_base"))] = thread.num
            except gdb.error:
                return {}  # another processor
    finally:
        if selected is not None and selected.is_valid():
            selected.switch()
            if frame is not None and frame.is_valid():
                frame.select()
    distances = {}
    for state in states:
        for pointer in pointers:
            distances[pointer - state] = distances.get(pointer - state, 0) + 1
    if not distances:
        return {}
    distance = max(distances, key=lambda known: (distances[known], known > 0, -abs(known)))
    return {state: pointers[state + distance] for state in states if state + distance in pointers}
