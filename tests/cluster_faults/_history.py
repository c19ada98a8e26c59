"""Histories as node.cpp writes them: what becomes of the operations, and violations that are planted."""

import collections
import dataclasses


@dataclasses.dataclass
class Operation:
    history: int  # the number of its file
    line: int  # of its end
    what: str
    first: int
    second: int
    begun: int
    ended: int
    outcome: str
    value: int
    words: str  # how the last attempt has ended

    def written(self):
        """The value that it has stored, if it is known that it did."""
        if self.outcome != "done" or self.what == "read" or (self.what == "swap" and self.value == 0):
            return None
        return self.first if self.what == "write" else self.second


def read(paths):
    """The operations with an end, by register."""
    registers = collections.defaultdict(list)
    for number, path in enumerate(paths):
        begun = {}
        for line, text in enumerate(path.read_text().splitlines()):
            words = text.split()
            if words[0] == "b":
                begun[words[1]] = words
                continue
            _, _, key, what, first, second, at = begun.pop(words[1])
            registers[key].append(Operation(number, line, what, int(first), int(second), int(at), int(words[4]), words[2],
                                            int(words[3]), " ".join(words[5:])))
    return registers


def first_answers(paths, since):
    """When each register answers first, of operations that begin after that time."""
    return {key: min(answered) for key, operations in read(paths).items()
            if (answered := [one.ended for one in operations if one.begun >= since and one.outcome == "done"])}


def _overwritten_before(operations, one):
    """A value that was certainly replaced before the operation began; None if there is none."""
    stored = sorted((other for other in operations if other.written() is not None and other.ended < one.begun),
                    key=lambda other: other.ended)
    if len(stored) < 2 or stored[0].ended >= stored[-1].begun:
        return None
    return stored[0].written()


def _stale_read(operations):
    for one in operations:
        if one.what == "read" and one.outcome == "done" and (old := _overwritten_before(operations, one)) is not None:
            return one, f"done {old}"
    return None


def _two_swaps(operations):
    """A swap of a value that is not there any more has done it all the same."""
    for one in operations:
        if one.what == "swap" and one.outcome == "done" and one.value == 0:
            if any(one.first == other.written() for other in operations):
                replaced = [other for other in operations if other.what == "swap" and other.written() is not None
                            and other.first == one.first and other.ended < one.begun]
                if replaced:
                    return one, "done 1"
    return None


def _ran_after_all(operations):
    """What a reader has seen is said not to have run."""
    for one in operations:
        value = one.written()
        if value is not None and any(other.what == "read" and other.outcome == "done" and other.value == value
                                     for other in operations):
            return one, "not_run 0"
    return None


PLANTED = {"a stale read": _stale_read, "two swaps of one value": _two_swaps, "a message that ran": _ran_after_all}


def planted(paths, folder):
    """(what, register, altered copies) for each kind of violation."""
    registers = read(paths)
    for number, (what, finds) in enumerate(PLANTED.items()):
        found = next(((key, place) for key, operations in registers.items() if (place := finds(operations))), None)
        if found is None:
            raise RuntimeError(f"the history has no place for {what}")
        key, (one, outcome) = found
        copies = []
        for at, path in enumerate(paths):
            lines = path.read_text().splitlines()
            if at == one.history:
                words = lines[one.line].split()
                lines[one.line] = " ".join([*words[:2], outcome, *words[4:]])
            copies.append(folder / f"planted {number}.{at}")
            copies[-1].write_text("".join(line + "\n" for line in lines))  # a node that was killed at once wrote none
        yield what, key, copies
