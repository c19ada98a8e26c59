"""Where things lie in memory, as the library itself tells it (src/actor/debugger_table.cpp)."""

import re
import struct

import gdb

from .memory import Unreadable, WORD

MAGIC = b"troupe debugger\0"
VERSION = 1
SYMBOL = "troupe_debugger"
SECTION = ".troupe_debugger"
NAME_BYTES = 28
PARTS = 3


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
        self.values = {}
        at = self.at + 32
        self.systems = at + PARTS * 2 * WORD + 4 * WORD
        for _ in range(PARTS):
            try:
                self._read_entries(memory.word(at), memory.word(at + WORD))
            except Unreadable:
                if memory.word(self.systems) == 0:
                    raise NoTroupe("the program has not begun yet: there is no runtime at this moment") from None
                raise
            at += 2 * WORD
        self.functions = self._read_functions(memory.word(at), memory.word(at + WORD))
        self.spawned_type = memory.word(at + 2 * WORD)
        self.threads = memory.word(at + 3 * WORD)

    def _find(self):
        for at in candidates():
            try:
                if self.memory.read(at, len(MAGIC)) == MAGIC:
                    return at
            except Unreadable:
                pass
        raise NoTroupe("this program does not use troupe, or its library is older than this script "
                       f"(it has no {SYMBOL})")

    def _read_entries(self, first, count):
        if count > 1000:
            raise Unreadable(f"the library's table at {self.at:#x} is damaged")
        size = NAME_BYTES + 4
        data = self.memory.read(first, count * size)
        for name, value in struct.iter_unpack(f"<{NAME_BYTES}sI", data):
            self.values[name.split(b"\0")[0].decode("ascii", "replace")] = value

    def _read_functions(self, first, count):
        if count > 1000:
            raise Unreadable(f"the library's table at {self.at:#x} is damaged")
        size = 16 + WORD
        found = {}
        for at in range(first, first + count * size, size):
            found[self.memory.word(at + 16)] = self.memory.text(at, 16)
        return found

    def __getitem__(self, name):
        value = self.values.get(name)
        if value is None:
            raise Unreadable(f"the library's table has no {name}: take the script that was installed with the library")
        return value
