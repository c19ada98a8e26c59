// wire_of: the stream below a tls_stream, for who looks whether its peer is still there. The
// library's own.
#pragma once

#include "tls/connection.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::tls {

struct wire_of {
  // The one that is read from; it is open.
  static stream& in(tls_stream& of) noexcept { return of.connection_.is->in(); }
};

}  // namespace troupe::tls
