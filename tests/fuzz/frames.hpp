// Gives the frames of a client of HTTP/2 to a session, in pieces and at once.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says into how many pieces the rest is cut, which follows the preface and SETTINGS.
// Returns "" if the session reports the same either way, and neither takes nor sends more than it
// may; otherwise the difference. Without nghttp2 it always returns "".
std::string frames_difference(std::string_view input);

}  // namespace troupe::test
