// quit_signal: on SIGQUIT the process writes its current work. For runtimes whose options ask for
// it.
//
// While runtimes listen, one thread for all runtimes of the process writes their dumps to stderr.
// The signal handler only wakes that thread, so that no worker needs to be idle. When the last
// runtime ends, SIGQUIT gets back its earlier meaning, unless other code has changed it meanwhile.
#pragma once

namespace troupe {

class runtime_core;

// Throws std::system_error when no descriptor can be opened or no thread started.
void listen_for_quit(runtime_core& core);
// Waits for a dump of this runtime that is being made. Does nothing for a runtime that does not
// listen.
void ignore_quit(runtime_core& core) noexcept;

}  // namespace troupe
