// Gives the bytes of a NATS server to a parser and a protocol_state, in pieces and at once.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte is the number of pieces into which the rest is cut. Returns "" if the
// protocol_state reports and sends the same for the pieces as for the whole input, and keeps its
// limits; otherwise the difference.
std::string nats_difference(std::string_view input);

}  // namespace troupe::test
