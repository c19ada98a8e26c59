// Reads what a proxy says about its client: the header of the PROXY protocol step by step and at
// once, and lists of Forwarded and X-Forwarded-For.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// Returns "" if the header is the same both ways, no step reads a byte behind it, and what a proxy
// appends to a list is found whatever is before it; otherwise what is wrong.
std::string proxies_difference(std::string_view input);

}  // namespace troupe::test
