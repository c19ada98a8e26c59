// server_numbers: the declared numbers of a server.
#pragma once

#include <string>
#include <vector>

#include "observe/numbers/tables.hpp"

namespace troupe::http {

struct server_state;

// `labels`: the runtime and the server. Throws std::bad_alloc.
void collect(observe::row_sink& sink, const std::vector<std::string>& labels,
             const server_state& server);

}  // namespace troupe::http
