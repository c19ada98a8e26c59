// Whether a message of permessage-deflate is inflated as zlib alone does it, whatever its pieces
// are.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says how large the window is, whether a context is kept, and into how many pieces
// the messages are cut; the second one how long a message may become. Two messages follow, the
// first one as long as the third byte says. "" when they are inflated as by zlib in one piece; else
// what differs.
std::string inflation_difference(std::string_view input);

}  // namespace troupe::test
