// wire_of: gives access to the stream below a tls_stream, to check whether its peer is still there,
// and to wait for it without a read. Internal to the library.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tls/tls_connection.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::tls {

struct wire_of {
  // The stream from which bytes are read. `secured` must be open.
  static stream& in(tls_stream& secured) noexcept { return secured.connection_.connection->in(); }
  // As connection::also_speaks.
  static void also_speaks(tls_stream& secured, std::string protocol, std::string beside) {
    secured.connection_.connection->also_speaks(std::move(protocol), std::move(beside));
  }
  // As connection::say_last.
  static void say_last(tls_stream& secured, std::string_view bytes) noexcept {
    secured.connection_.connection->say_last(bytes);
  }
  // The connection will be idle: gives memory back.
  static void rest(tls_stream& secured) noexcept { secured.connection_.connection->rest(); }
};

}  // namespace troupe::tls
