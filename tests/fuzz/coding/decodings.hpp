// Decodes bodies of gzip, brotli and zstd in pieces of any length and at once.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says which coding the rest has, and into how many pieces it is cut; the second one
// how much room there is for what becomes of a piece. Returns "" if the body is the same, or the
// same error, and the decoder keeps to its memory; otherwise the difference.
std::string decodings_difference(std::string_view input);

}  // namespace troupe::test
