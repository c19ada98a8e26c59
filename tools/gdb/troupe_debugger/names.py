"""Functions and lines of the program: by their symbols, and by what co_await notes in its coroutine."""

import re

import gdb

from .memory import Unreadable, WORD

# What the library's own messages do, by a part of their functions' names.
KNOWN_MESSAGES = [
    ("construct", "constructor"),
    ("unreferenced", "unreferenced"),
    ("callback", "a callback of a future"),
    ("submitted", "a callback of a submitted call"),
    ("spawned_", "a spawned task"),
    ("stop_now", "stop_now"),
    ("stop", "stop"),
    ("watch_message", "watch"),
    ("join_message", "spawn"),
    ("escalated_message", "escalate"),
    ("reconstruction", "restart"),
    ("consume", "consume"),
]
# The same for suspensions that the library's table does not name.
KNOWN_WAITS = [
    ("::receiving<", "a value from a channel"),
    ("::sending<", "room in a channel"),
    ("broadcast_receiving", "a value of a broadcast"),
    ("watch_waiting", "a change of a watch"),
    ("semaphore::acquiring", "permits of a semaphore"),
    ("barrier::arriving", "the other parties of a barrier"),
    ("condition::waiting", "a condition"),
    ("select", "one of several channels"),
    ("cache", "a load of a cache"),
    ("pool", "a resource of a pool"),
    ("stoppable", "a sleep"),
    ("fork", "a fork"),
    ("tree_of_task", "a fork"),
    ("deadline", "the end of a deadline"),
]
LIBRARY_FILE = re.compile(r"troupe/(actor|task|sync|jobs|io|runtime|parallel|protocol|streams|kit|cron|dns|tls|http|otlp|observe_page)/[^.]*\.hpp$")


def balanced(text, start, stops):
    """The text from `start` up to the first of `stops` that is in no bracket."""
    depth = 0
    for at in range(start, len(text)):
        c = text[at]
        if depth == 0 and c in stops:
            return text[start:at]
        if c in "<({[":
            depth += 1
        elif c in ">)}]":
            depth -= 1
    return text[start:]


def without_parameters(name):
    """`f(int)::{lambda(int)#1}(int) const` becomes `f::{lambda(int)#1}`."""
    found, at = "", 0
    while True:
        part = balanced(name, at, "(")
        found += part
        at += len(part)
        if at == len(name):
            return found
        at += len(balanced(name, at + 1, ")")) + 2
        if not name.startswith("::", at):
            return found


def plain(name):
    """A function's name without its return type, its parameters, its template's explanation."""
    name = re.sub(r" \[clone [^]]*\]", "", name)
    name = re.sub(r" \[with .*\]$", "", name)
    name = re.sub(r"\(anonymous namespace\)::|\{anonymous\}::", "", name)
    name = without_parameters(name.replace("operator()", "operator\1"))
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        if name[at] in ">)}]":
            depth += 1
        elif name[at] in "<({[":
            depth -= 1
        elif name[at] == " " and depth == 0:
            name = name[at + 1 :]
            break
    return name.lstrip("*&").replace("}::operator\1", "}").replace("\1", "()")


def short_file(path):
    return path.rsplit("/", 1)[-1]


class Names:
    def __init__(self, memory):
        self.memory = memory
        self.symbols = {}

    def symbol(self, address):
        """The name of the function that begins at `address`; null when the program has no symbols."""
        if address not in self.symbols:
            self.symbols[address] = self._symbol(address)
        return self.symbols[address]

    @staticmethod
    def _symbol(address):
        try:
            said = gdb.execute(f"info symbol {address:#x}", to_string=True)
        except gdb.error:
            return None
        found = re.match(r"(.*?)(?: \+ \d+)? in section ", said, re.S)
        return found.group(1) if found else None

    def handler(self, act):
        """What a message asks for, by the function that handles it: `&Bank::transfer`."""
        symbol = self.symbol(act)
        if symbol is None:
            return f"a handler at {act:#x}"
        text = symbol.replace("(anonymous namespace)::", "")
        if found := re.search(r"\b(?:method_message|method_call)<", text):
            at = found.end() + len(balanced(text, found.end(), ",")) + 1
            method = balanced(text, at, ",>")
            method = method[method.find("&") + 1 :].strip().lstrip("(").replace("operator()", "operator\1")
            return "&" + balanced(method, 0, "()").replace("\1", "()")
        if found := re.search(r"\b(?:callable_message|callable_call)<", text):
            at = found.end() + len(balanced(text, found.end(), ",")) + 1
            return balanced(text, at, ",>").strip()
        if found := re.search(r"::act(_on)?\(", text):
            before = text[: found.start()]
            for part, words in KNOWN_MESSAGES:
                if part in before:
                    return words
        return plain(symbol)

    def awaited(self, act):
        """What a suspension waits for, by its function, when the library's table does not say it."""
        symbol = self.symbol(act)
        if symbol is None:
            return f"something (function at {act:#x})"
        for part, words in KNOWN_WAITS:
            if part in symbol:
                return words
        if found := re.search(r"\bawaiting<", symbol):
            return balanced(symbol, found.end(), ">").strip() + "()"
        return plain(symbol)

    def line(self, location):
        """(file, line, function) of the std::source_location whose content lies there; null for none."""
        if location == 0:
            return None
        try:
            file = self.memory.name(self.memory.word(location))
            function = self.memory.text(self.memory.word(location + WORD))
            line = self.memory.u32(location + 2 * WORD)
        except Unreadable:
            return None
        return (file, line, function) if 0 < line < 10_000_000 else None

    def coroutine(self, resume, location):
        """(function, file, line) of a coroutine, by its resume function and by its last co_await."""
        line = self.line(location)
        symbol = self.symbol(resume)
        if symbol is not None:
            function = plain(symbol)
        elif line is not None and line[2]:
            function = plain(line[2])
        else:
            function = f"a coroutine at {resume:#x}"
        file, number = (line[0], line[1]) if line is not None else (None, 0)
        return function, file, number

    @staticmethod
    def is_of_library(file):
        return file is not None and LIBRARY_FILE.search(file) is not None
