"""For GDB: overwrites words of the stopped program at random, and expects each command to say something sensible.

A command may say that it cannot read what it finds, but the script must neither fail nor go on endlessly. Each word is put back."""

import os
import random
import struct
import time

import gdb
from troupe_debugger.actors import Program

ROUNDS = 3000 if os.environ.get("TROUPE_DEEP") else 150
SECONDS_MAX = 110
COMMANDS = ["info troupe actors", "info troupe waits", "troupe backtrace 3", "troupe backtrace 8194", "troupe backtrace 8321", "info troupe turn 4097",
            "info troupe mail 2"]


def words_that_matter():
    """Addresses of words that the commands read."""
    program = Program()
    table, memory = program.table, program.memory
    found = list(range(table.at + 16, table.at + 240, 8))
    for slab in program.slabs():
        found += range(slab, slab + 64, 8)
        for cell, *_ in program.cells(slab):
            found += range(cell, cell + 24, 8)
            actor = program.actor_at(cell)
            activation = actor.activation()
            if activation != 0:
                found += range(activation, activation + table["activation.bytes"], 8)
            for call in actor.calls():
                found += range(call, call + table["async_call.bytes"], 8)
                awaited = memory.word(call + table["async_call.awaited"])
                found += range(awaited, awaited + 80, 8)
                who = memory.word(awaited + table["suspension.who"])
                found += range(who - 16, who + 32, 8)
            for message, _ in actor.mail():
                found += range(message, message + 16, 8)
    for system in program.systems():
        found.append(system + table["actor_system.debugger_link"] + table["link.next"])
        found += range(system + table["actor_system.slots"], system + table["actor_system.slots"] + 64, 8)
    return found


def main():
    chance = random.Random(7)
    process = gdb.selected_inferior()
    places = words_that_matter()
    # after the table was read: the script must find out by itself
    values = [0, 1, 8, 0x4141414141414141, 0xFFFFFFFFFFFFFFFF, 1 << 63, 0x1000, None]
    begun, times, worst = time.monotonic(), 0, 0.0
    while times < ROUNDS and time.monotonic() - begun < SECONDS_MAX:
        at = chance.choice(places)
        before = bytes(process.read_memory(at, 8))
        value = chance.choice(values)
        value = chance.choice(places) if value is None else value
        process.write_memory(at, struct.pack("<Q", value))
        for command in COMMANDS:
            started = time.monotonic()
            try:
                said = gdb.execute(command, to_string=True)
                if not said:
                    raise RuntimeError(f"{command} says nothing with {value:#x} at {at:#x}")
            except gdb.error as problem:
                if not str(problem).startswith("troupe: "):
                    raise RuntimeError(f"{command} with {value:#x} at {at:#x}: {problem}") from None
                if "Error: " in str(problem):
                    print(f"{command} with {value:#x} at {at:#x}: {problem}")
            worst = max(worst, time.monotonic() - started)
        process.write_memory(at, before)
        times += 1
    print(f"damaged {times} times")
    print(f"the longest command took {worst:.1f} s")


main()
