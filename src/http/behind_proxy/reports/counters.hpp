// counters: the outcomes of the PROXY protocol headers of one server.
// Threads: any.
#pragma once

#include <cstdint>

#include "http/server/numbers/event_counts.hpp"
#include "troupe/http/server.hpp"

namespace troupe::http {

enum class proxy_header_event : std::uint8_t {
  accepted,
  untrusted,
  malformed,
  timed_out,
  lost,
  count_of_events,
};

class proxy_header_counters
    : public event_counts<proxy_header_event, proxy_header_event::count_of_events> {
 public:
  proxy_header_counts all() const noexcept {
    proxy_header_counts sum;
    sum.accepted = of(proxy_header_event::accepted);
    sum.untrusted = of(proxy_header_event::untrusted);
    sum.malformed = of(proxy_header_event::malformed);
    sum.timed_out = of(proxy_header_event::timed_out);
    sum.lost = of(proxy_header_event::lost);
    return sum;
  }
};

}  // namespace troupe::http
