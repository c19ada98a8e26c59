"""Commands and pretty printers of GDB for programs that use troupe.

    (gdb) source /usr/local/share/troupe/gdb/troupe_gdb.py

    info troupe actors [-n COUNT] [CLASS]   the actors, their states and their mail
    info troupe waits [-n COUNT] [CLASS]    which call waits for what, and cycles of waits
    info troupe mail ACTOR                  the messages that wait for an actor
    info troupe turns [-n COUNT] [HANDLER]  the last turns, of a program with a flight recorder
    troupe backtrace ACTOR                  a suspended turn, through its chain of awaits
    $troupe_object(ACTOR)                   the actor's object, for `print`

An ACTOR is the number that these commands show, as 12 or #12, or a ref, or an address. They work on
a stopped process and on a core file, and call no function of the program.
"""

import os
import sys

# The folder may belong to another user, and needs no cache.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# A second `source` takes the files as they are now.
for loaded in [name for name in sys.modules if name.split(".")[0] == "troupe_debugger"]:
    del sys.modules[loaded]

from troupe_debugger import commands, printers  # noqa: E402

sys.path.pop(0)
commands.register()
printers.register()
