// page: what a program does, as a page for a browser on this machine.
#pragma once

#include <string>

namespace troupe_tool {

// Serves the page of the program with that process number until SIGINT or SIGTERM comes. `listen`
// is an address and a port of the loopback: other machines could read along. Throws failure.
void serve_page(int pid, const std::string& listen);

}  // namespace troupe_tool
