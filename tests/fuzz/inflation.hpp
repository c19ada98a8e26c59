// Compares our inflation of messages of permessage-deflate with that of zlib alone, for messages in
// pieces of any size.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says how large the window is, whether a context is kept, and into how many pieces
// the messages are cut. The second byte says how long a message may become. Two messages follow,
// and the third byte says how long the first one is. Returns "" if the result is that of zlib in
// one piece; otherwise the difference.
std::string inflation_difference(std::string_view input);

}  // namespace troupe::test
