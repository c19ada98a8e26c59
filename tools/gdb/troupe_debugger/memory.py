"""Reads the memory of the stopped program or of the core file."""

import struct

import gdb

PAGE = 4096
WORD = struct.calcsize("P")


class Unreadable(Exception):
    """Something in the program's memory is not what it should be; the text says what."""


class Memory:
    """What was read is kept, so an object of this class must not outlive the command that made it."""

    def __init__(self):
        self.process = gdb.selected_inferior()
        self.pages = {}

    def read(self, address, size):
        """`size` bytes as they lie there, not kept."""
        try:
            return bytes(self.process.read_memory(address, size))
        except (gdb.error, OverflowError, ValueError):
            raise Unreadable(f"the memory at {address:#x} cannot be read") from None

    def _page(self, address):
        start = address & ~(PAGE - 1)
        page = self.pages.get(start)
        if page is None:
            page = self.pages[start] = self.read(start, PAGE)
        return page

    def number(self, address, size):
        inside = address & (PAGE - 1)
        if inside + size > PAGE:
            return int.from_bytes(self.read(address, size), "little")
        return int.from_bytes(self._page(address)[inside : inside + size], "little")

    def byte(self, address):
        return self.number(address, 1)

    def half(self, address):
        return self.number(address, 2)

    def u32(self, address):
        return self.number(address, 4)

    def word(self, address):
        return self.number(address, WORD)

    def text(self, address, most=2000):
        """A text that ends with a zero byte."""
        found = b""
        while len(found) < most:
            inside = address & (PAGE - 1)
            part = self._page(address)[inside:]
            end = part.find(0)
            if end >= 0:
                found += part[:end]
                break
            found += part
            address += len(part)
        return found[:most].decode("utf-8", "replace")

    def name(self, address):
        """As text(), for the name of a class or a function. Raises Unreadable when it is none."""
        text = self.text(address)
        if not text or not text.isprintable():
            raise Unreadable(f"there is no name at {address:#x}")
        return text


def walk(memory, first, next_of, objects, most=10_000_000):
    """The objects of a linked list. Raises Unreadable when the list does not end."""
    seen = set()
    at = first
    while at != 0:
        if at in seen or len(seen) == most:
            raise Unreadable(f"the list of {objects} is damaged at {at:#x}")
        seen.add(at)
        yield at
        at = memory.word(next_of(at))
