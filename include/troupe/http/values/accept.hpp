// accept: a client's preference among several forms of an answer.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace troupe::http {

// A client's preference, from 0 (not acceptable) to 1,000.
using quality = unsigned;

// The quality that the value of a field Accept gives to a type such as "application/json": the
// quality of the most specific range that fits it ("application/json", "application/*", "*/*"), 0
// if none does. An empty value accepts all. Parameters of a range other than q are ignored, and a
// malformed range counts as absent.
quality quality_of_type(std::string_view accept, std::string_view type) noexcept;

// The same for a field Accept-Encoding and a coding such as "gzip". A coding that is not named has
// the quality of "*", else 0; "identity" is acceptable unless it is excluded. An empty value
// accepts only "identity".
quality quality_of_coding(std::string_view accept_encoding, std::string_view coding) noexcept;

// The index of the type that a field Accept prefers; nothing if it accepts none. On a tie the type
// that it names by the more specific range wins, then the one that it names first, then the first
// of `types`.
//
// Example:
//     constexpr std::string_view types[] = {"text/html", "application/json"};
//     const auto best = troupe::http::preferred_type("text/*;q=0.5, application/json", types);
//     std::cout << types[*best] << '\n';  // application/json
std::optional<std::size_t> preferred_type(std::string_view accept,
                                          std::span<const std::string_view> types) noexcept;

}  // namespace troupe::http
