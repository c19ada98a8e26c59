// metrics_body: the numbers of a program as OTLP's JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "observe/numbers/tables.hpp"

namespace troupe::otlp {

// The body of a request with all these numbers, at `now_unix_ns`. Counters and histograms have
// counted since `began_unix_ns`. The names are those for Prometheus, but for the "_total" of a
// counter, which collectors add. Throws std::bad_alloc.
std::string metrics_body(std::string_view resource, const observe::number_tables& all,
                         std::int64_t began_unix_ns, std::int64_t now_unix_ns);

}  // namespace troupe::otlp
