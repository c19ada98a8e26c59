// quit_signal: SIGQUIT as a question: what is this program doing? For runtimes that ask for it.
//
// One thread for all runtimes of the process, while there are any that listen, writes their dumps
// to stderr. The handler only wakes it, so that no worker need be at leisure. With the last one
// SIGQUIT means what it did before, unless somebody else has taken it meanwhile.
#pragma once

namespace troupe {

class runtime_core;

// Throws std::system_error when there is no descriptor or no thread to be had.
void listen_for_quit(runtime_core& core);
// Waits for a dump of it that is being made. Nothing happens for one that does not listen.
void ignore_quit(runtime_core& core) noexcept;

}  // namespace troupe
