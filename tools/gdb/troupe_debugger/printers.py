"""What `print` shows of a ref, a future, a promise, a task and a mailbox."""

import gdb
import gdb.printing

from .actors import Program
from .commands import cell_in, counted
from .memory import Unreadable
from .waits import Coroutine, Wait


def said(tell):
    """The text of a printer; when the program's data are damaged, the text says so."""

    def to_string(self):
        try:
            return tell(self, Program())
        except Unreadable as problem:
            return f"<{problem}>"
        except gdb.error as problem:
            return f"<{problem}>"

    return to_string


def actor_text(program, cell):
    actor = program.actor_at(cell)
    if actor is None:
        return f"an actor that has gone, {cell:#x}"
    mail = actor.mail()
    return f"{actor} ({actor.state(mail)}, {counted(len(mail), 'message')})"


class Ref:
    """troupe::ref<T>"""

    def __init__(self, value):
        self.value = value

    @said
    def to_string(self, program):
        bits = int(self.value["address_"]["bits_"])
        return "ref to no actor" if bits == 0 else "ref to " + actor_text(program, cell_in(bits))


class Result:
    """troupe::future<T> and troupe::promise<T>: the state that both share."""

    def __init__(self, name, value):
        self.name = name
        self.value = value

    def state(self):
        state = self.value["state_"]
        return state["state_"] if state.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT else state

    @said
    def to_string(self, program):
        state = int(self.state())
        if state == 0:
            return f"{self.name} without a result (moved from, awaited or resolved)"
        table = program.table
        word = program.memory.word(state + table["shared_state.word"])
        if word == table["shared_state.done"]:
            return f"{self.name}, ready"
        text = f"{self.name}, pending"
        if program.memory.word(state + table["shared_state.asked"]) != 0:
            wait = Wait.of_state(program, state)
            text += f": {wait.words}{wait.of_whom()}"
        if word == table["shared_state.untaken"]:
            return text + ", and nobody can receive it"
        return text + (", and someone waits for it" if word != 0 else "")

    def children(self):
        try:
            state = self.state()
            table = Program().table
            if int(state) != 0 and int(state.dereference()["word"]["_M_i"]) == table["shared_state.done"]:
                yield "result", state.dereference()["result"]["content_"]
        except (Unreadable, gdb.error):
            pass


class Task:
    """troupe::task<T>"""

    def __init__(self, value):
        self.value = value

    @said
    def to_string(self, program):
        frame = int(self.value["handle_"]["_M_fr_ptr"])
        if frame == 0:
            return "task that was moved from"
        table, memory = program.table, program.memory
        promise = frame + table["coroutine.frame"]
        if memory.word(frame) == 0:
            return f"task that has ended, frame {frame:#x}"
        if memory.word(promise + table["coroutine.in"]) == 0:
            return f"task {program.names.coroutine(memory.word(frame), 0)[0]}, not started, frame {frame:#x}"
        coroutine = Coroutine(program, promise)
        return f"task {coroutine.function}" + (f" at {coroutine.place()}" if coroutine.line else "") + f", frame {frame:#x}"


class Mailbox:
    """troupe::actor::cell, and the mailbox in it: an actor with its messages."""

    def __init__(self, value, word=None):
        self.cell = int(value.address) if word is None and value.address is not None else None
        if word is not None:
            self.cell = int(word)

    @said
    def to_string(self, program):
        if self.cell is None:
            return "<a copy of a mailbox has no actor>"
        return actor_text(program, self.cell)

    def children(self):
        try:
            program = Program()
            actor = program.actor_at(self.cell) if self.cell is not None else None
            for index, (message, _) in enumerate(actor.mail() if actor is not None else []):
                act = program.memory.word(message + program.table["message.act"])
                yield f"[{index}]", program.names.handler(act)
        except (Unreadable, gdb.error):
            pass


def mailbox_word(value):
    return Mailbox(value, value["word_"].address)


def register():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("troupe")
    collection.add_printer("ref", "^troupe::ref<.*>$", Ref)
    collection.add_printer("future", "^troupe::future<.*>$", lambda value: Result("future", value))
    collection.add_printer("promise", "^troupe::promise<.*>$", lambda value: Result("promise", value))
    collection.add_printer("task", "^troupe::task<.*>$", Task)
    collection.add_printer("cell", "^troupe::actor::cell$", Mailbox)
    collection.add_printer("mailbox", "^troupe::actor::mailbox_word<.*>$", mailbox_word)
    gdb.printing.register_pretty_printer(None, collection, replace=True)
