// logs: the lines of a program's log as OTLP's JSON.
#pragma once

#include <string>
#include <string_view>

#include "log/records.hpp"

namespace troupe::otlp {

// The body of a request, with all lines of this list. Lines of one logger that follow each other
// share a scope, which has the logger's name.
std::string logs_body(std::string_view resource, const log::record* first);

}  // namespace troupe::otlp
