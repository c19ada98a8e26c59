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
    ("operation_suspension", "I/O"),
    ("locking<", "a lock"),
    ("fork", "a fork"),
    ("tree_of_task", "a fork"),
    ("deadline", "the end of a deadline"),
]
LIBRARY_FILE = re.compile(r"troupe/(actor|task|sync|jobs|io|runtime|parallel|protocol|streams|kit|dns|tls|http)/[^.]*\.hpp$")


def balanced(text, start, stops):
    """The text from `start` up to the first of `stops` that is in no bracket."""
    depth = 0
    for at in range(start, len(text)):
        c = text[at]
        if depth == 0 and c in stops and not text.startswith("(anonymous namespace)", at):
            return text[start:at]
        if c in "<({[":
            depth += 1
        elif c in ">)}]":
            depth -= 1
    return text[start:]


def plain(name):
    """A function's name without its return type, its parameters, its template's explanation."""
    name = re.sub(r" \[clone [^]]*\]", "", name)
    name = re.sub(r" \[with .*\]$", "", name)
    name = name.replace("(anonymous namespace)", "\1").replace("{anonymous}", "\1")
    # A lambda's own parameters come with its name: keep those, and what is before them.
    cut = balanced(name, 0, "(")
    cut = cut.replace("operator()", "operator\2") if "operator()" in cut else cut
    depth = 0
    for at in range(len(cut) - 1, -1, -1):
        if cut[at] in ">)}]":
            depth += 1
        elif cut[at] in "<({[":
            depth -= 1
        elif cut[at] == " " and depth == 0:
            cut = cut[at + 1 :]
            break
    return (cut or name).replace("\1", "(anonymous namespace)").replace("\2", "()").lstrip("*&")


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
        text = symbol.replace("(anonymous namespace)", "\1")
        if found := re.search(r"\b(?:method_message|method_call)<", text):
            at = found.end() + len(balanced(text, found.end(), ",")) + 1
            method = balanced(text, at, ",>").strip()
            if method.startswith("&("):
                method = "&" + balanced(method, 2, "()")
            elif method.startswith("(&"):
                method = balanced(method, 1, "()")
            return method.replace("\1::", "")
        if found := re.search(r"\b(?:callable_message|callable_call)<", text):
            at = found.end() + len(balanced(text, found.end(), ",")) + 1
            return balanced(text, at, ",>").strip().replace("\1::", "")
        if "::act_on" in text or "::act" in text:
            before = text.split("::act", 1)[0]
            for part, words in KNOWN_MESSAGES:
                if part in before:
                    return words
        return plain(symbol).replace("(anonymous namespace)::", "")

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
        return function.replace("(anonymous namespace)::", ""), file, number

    @staticmethod
    def is_of_library(file):
        return file is not None and LIBRARY_FILE.search(file) is not None
