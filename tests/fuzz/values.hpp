// Reads bodies of multipart/form-data in pieces and at once, and takes cookies, queries and lists
// of Accept apart.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The first byte says into how many pieces the rest is cut, which is a body with the boundary "b",
// and the text of a field. Returns "" if the parts are the same, or the same error, and nothing is
// read that is not there; otherwise the difference.
std::string values_difference(std::string_view input);

}  // namespace troupe::test
