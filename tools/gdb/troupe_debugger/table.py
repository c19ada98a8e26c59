"""Where things lie in memory, as the library itself tells it (src/runtime/debugger_table.cpp)."""

import re
import struct

import gdb

from .memory import Unreadable, WORD

MAGIC = b"troupe debugger\0"
VERSION = 1
SYMBOL = "troupe_debugger"
SECTION = ".troupe_debugger"
NAME_BYTES = 28
FUNCTION_BYTES = 16 + WORD
MOST = 1000


class NoTroupe(Unreadable):
    """The program has no table."""


def candidates():
    """Where the table may be: at its symbol, or, in a program without symbols, in its section."""
    try:
        yield int(gdb.parse_and_eval(f"(unsigned long)&{SYMBOL}"))
    except gdb.error:
        pass
    for line in gdb.execute("info files", to_string=True).splitlines():
        if found := re.match(rf"\s*(0x[0-9a-f]+) - 0x[0-9a-f]+ is {re.escape(SECTION)}\b", line):
            yield int(found.group(1), 16)


class Table:
    def __init__(self, memory):
        self.memory = memory
        self.at = self._find()
        version, entry_bytes = memory.word(self.at + 16), memory.word(self.at + 24)
        if version != VERSION or entry_bytes != NAME_BYTES + 4:
            raise Unreadable(
                f"the library's table has the version {version}, and this script reads version {VERSION}: "
                "take the script that was installed with the library")
        self.values, self.functions = {}, {}
        at = self.at + 32
        self.threads = memory.word(at)
        self.systems = at + WORD
        self.spawned_type = memory.word(at + 3 * WORD)
        # Behind the parts: the list of flight recorders, their subjects, the kinds of events.
        self.behind = at + 5 * WORD + self._checked(memory.word(at + 4 * WORD)) * 4 * WORD
        try:
            self._read_parts(at + 5 * WORD, self._checked(memory.word(at + 4 * WORD)))
        except Unreadable:
            # The program is not relocated before it begins.
            if memory.word(self.systems) == 0:
                raise NoTroupe("the program has not begun yet: there is no runtime at this moment") from None
            raise

    def _find(self):
        for at in candidates():
            try:
                if self.memory.read(at, len(MAGIC)) == MAGIC:
                    return at
            except Unreadable:
                pass
        raise NoTroupe("this program does not use troupe, or its library is older than this script "
                       f"(it has no {SYMBOL})")

    def _checked(self, count):
        if count > MOST:
            raise Unreadable(f"the library's table at {self.at:#x} is damaged")
        return count

    def _read_parts(self, first, count):
        memory = self.memory
        for at in range(first, first + count * 4 * WORD, 4 * WORD):
            entries, functions = memory.word(at), memory.word(at + 2 * WORD)
            size = self._checked(memory.word(at + WORD)) * (NAME_BYTES + 4)
            for name, value in struct.iter_unpack(f"<{NAME_BYTES}sI", memory.read(entries, size)):
                self.values[name.split(b"\0")[0].decode("ascii", "replace")] = value
            end = functions + self._checked(memory.word(at + 3 * WORD)) * FUNCTION_BYTES
            for function in range(functions, end, FUNCTION_BYTES):
                self.functions[memory.word(function + 16)] = memory.text(function, 16)

    def __getitem__(self, name):
        value = self.values.get(name)
        if value is None:
            raise Unreadable(f"the library's table has no {name}: take the script that was installed with the library")
        return value

    def name_of(self, kind, value):
        """The name after `kind.` that has this value."""
        names = [name for name, known in self.values.items() if known == value and name.startswith(kind + ".")]
        return names[0][len(kind) + 1 :] if names else f"{kind} {value}"
