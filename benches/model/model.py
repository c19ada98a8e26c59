#!/usr/bin/env python3
"""The words and locks that a whole process shares, and what each of them allows on many cores.

An operation that holds a shared thing for t allows 1/t of them a second, at any number of workers.
Prints for 8, 16, 64 and 128 cores, in millions a second, what each shared thing allowed before the
steps of docs/decisions/many_cores.md and what it allows now. The constants are assumptions about
such machines; `model.py PROGRAM`, with the program of constants.cpp, prints some of this machine's.

Ends with 1 if a step that is said to be done has not lifted its cap."""

import math
import subprocess
import sys

CORES = (8, 16, 64, 128)
# Nanoseconds: a cache line that another core changed last; a membarrier on bare metal.
LINE = {8: 30, 16: 45, 64: 80, 128: 120}
MEMBARRIER = {8: 2000, 16: 3000, 64: 6000, 128: 10000}
# A membarrier on many virtual machines.
MEMBARRIER_VIRTUAL = 30000
REQUEST = 5200  # nanoseconds of one processor for a request of HTTP/1
EVENT_SERVED = 1300  # of an event of I/O, with its recv
EVENT_FETCHED = 120
EVENTS_A_LOOK = 64
STOLEN = 8  # runnables in a steal among many workers; 64 at most
ASKED_IN_VAIN = 0.1  # of all asks; a steal makes a membarrier then
PART_LINES = 4  # of an asked part: the request there and back, the part and its frame
PATIENCE = 20000  # for which a thread without work waits for the answer of an owner of parts
WAITS_A_SETTLING = 8  # of a worker, between two times that it runs dry
LEASES_A_SHARE = 16  # of a worker, before it changes the common count
SPANS_A_SHARE = 32  # permits that a shard takes at once, with the exporter's defaults
GROUP = 16  # workers for each searcher
WORKERS_A_SHARD = 16  # of the reactor
WORKERS_A_WHEEL = 8  # of the timers of more than 16 workers
SEARCHED = 6  # victims that a searcher looks at before it looks at all


def changes(number, cores):
    """Changes of one word."""
    return number * LINE[cores]


def locked(cores, inside, lines):
    """A mutex: its own line twice, and the lines that are touched inside."""
    return inside + (2 + lines) * LINE[cores]


def moved(cores):
    """Two lines for each runnable: itself, and its actor's mail."""
    return STOLEN * 2 * LINE[cores]


def steal_before(cores, membarrier):
    """One searcher at a time, which looks at all workers."""
    return membarrier + 1.5 * cores * LINE[cores] + moved(cores)


def steal_now(cores, membarrier):
    """So many searchers at a time, each of which asks its victim: a line there and back."""
    searchers = 1 + cores // GROUP
    searched = min(SEARCHED, cores) if cores > GROUP else cores
    one = ASKED_IN_VAIN * membarrier + (1.5 * searched + 2) * LINE[cores] + moved(cores)
    return one / searchers


def part_now(cores, others_answer):
    """A searcher for each two workers. An owner that does not answer is passed over; where no other
    owner answers either, the searcher makes a membarrier, and these exclude each other."""
    asked = min(SEARCHED, cores - 1) if others_answer else 1
    waits = PATIENCE * sum(ASKED_IN_VAIN**i for i in range(1, asked + 1))
    one = (1.5 * min(SEARCHED, cores) + PART_LINES) * LINE[cores] + waits
    return max(ASKED_IN_VAIN**asked * MEMBARRIER[cores], one / (cores / 2))


def part_before(cores):
    return MEMBARRIER[cores] + cores * LINE[cores]


def http(cores, door, common_changes, leases):
    """The most of what the processors, the door, the common words and the leases need."""
    leased = 2 * locked(cores, 20, 0) if leases else 0
    return max(REQUEST / cores, door, changes(common_changes, cores), leased)


# Each row: its name, the nanoseconds that it holds the shared thing before and now, and whether a
# step is done that must have made it better.
def fetched(cores):
    """Each shard has a flag, and a lock whose line each event changes twice."""
    look = EVENT_FETCHED + 2 * LINE[cores] / EVENTS_A_LOOK
    return max(look, changes(2, cores)) / math.ceil(cores / WORKERS_A_SHARD)


def wheels(cores):
    """Of timers: the address of each chooses one."""
    return 1 if cores <= 16 else math.ceil(cores / WORKERS_A_WHEEL)


ROWS = [
    ("events of I/O, by the doors", lambda p: EVENT_SERVED, fetched, True),
    ("waits for I/O, by their count", lambda p: changes(3, p),
     lambda p: changes(1, p) / WAITS_A_SETTLING, True),
    ("leased reads, by the pool's mutex", lambda p: 2 * locked(p, 20, 0),
     lambda p: changes(2, p) / LEASES_A_SHARE, True),
    ("wakes across workers, by the gate", lambda p: changes(2, p), None, True),
    ("steals, on bare metal", lambda p: steal_before(p, MEMBARRIER[p]),
     lambda p: steal_now(p, MEMBARRIER[p]), True),
    ("steals, on a virtual machine", lambda p: steal_before(p, MEMBARRIER_VIRTUAL),
     lambda p: steal_now(p, MEMBARRIER_VIRTUAL), True),
    ("parts of forks, owners answer apart", part_before, lambda p: part_now(p, True), True),
    ("parts of forks, owners silent together", part_before, lambda p: part_now(p, False), True),
    ("timers, armed and cancelled", lambda p: 2 * locked(p, 50, 3),
     lambda p: 2 * locked(p, 50, 2) / wheels(p), True),
    ("accepted connections, by one task", lambda p: 7000 + 4 * locked(p, 60, 3), "same", False),
    ("lines of the log, by the buffer's mutex", lambda p: locked(p, 50, 4) + changes(1, p),
     lambda p: locked(p, 50, 1), True),
    ("spans, by their list", lambda p: changes(2, p), lambda p: changes(2, p) / SPANS_A_SHARE, True),
    ("blocking calls, by the pool's mutex", lambda p: 2 * locked(p, 60, 4) + changes(2, p),
     lambda p: 2 * locked(p, 60, 1) + changes(1, p), True),
    ("durable turns, by the engine's mutex", lambda p: 5 * locked(p, 150, 2),
     lambda p: 3 * locked(p, 150, 2), True),
    ("HTTP/1 requests", lambda p: http(p, EVENT_SERVED, 5, True),
     lambda p: http(p, fetched(p), 1, False), True),
]


def rate(held):
    """Nanoseconds to millions a second."""
    return 1e3 / held


def shown(number):
    return f"{number:9.2f}"


def measured(program):
    """The constants that two processors can measure."""
    said = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: float(number) for name, number in map(str.split, said.splitlines())}


def main():
    if len(sys.argv) > 1:
        here = measured(sys.argv[1])
        print(f"this machine: a line {here['line_there_and_back'] / 2:.0f} ns, a change of a line "
              f"that the core has {here['change_alone']:.0f} ns, a membarrier "
              f"{here['membarrier']:.0f} ns")
    print(f"{'million a second at':48}" + "".join(f"{p:9}" for p in CORES))
    failed = False
    for name, before, now, done in ROWS:
        print(f"{name:40} before " + "".join(shown(rate(before(p))) for p in CORES))
        if now is None:
            print(f"{'':40} now    " + f"{'no cap':>9}" * len(CORES))
        elif now != "same":
            print(f"{'':40} now    " + "".join(shown(rate(now(p))) for p in CORES))
        if done and now is not None and any(now(p) >= before(p) for p in CORES[1:]):
            print(f"model: {name}: the step has lifted nothing")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
