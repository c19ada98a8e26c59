"""What the commands and the pretty printers of troupe_gdb.py are made of, from the bottom up:

    memory     reads the memory of the program
    table      where things lie, as the library tells it (src/runtime/debugger_table.cpp)
    names      functions and lines of the program
    actors     runtimes, actors, mail and threads
    waits      suspended calls, what they wait for, and the coroutines in between
    commands   what the user types
    printers   what `print` shows
"""
