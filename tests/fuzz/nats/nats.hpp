// Gives the bytes of a NATS server to a parser and a protocol_state, in pieces and at once.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says into how many pieces the rest is cut. Returns "" if the protocol_state
// reports and sends the same either way, and keeps what it must; otherwise the difference.
std::string nats_difference(std::string_view input);

}  // namespace troupe::test
