// attributes: parts that all requests share, as OTLP's JSON, and the answer of a collector.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/json_text.hpp"

namespace troupe::otlp {

// A key with its value, as an object.
void add_attribute(base::json_text& out, std::string_view key, std::string_view text);
void add_attribute(base::json_text& out, std::string_view key, std::int64_t number);
void add_attribute(base::json_text& out, std::string_view key, bool truth);
void add_attribute(base::json_text& out, std::string_view key, double number);
void add_attribute(base::json_text& out, std::string_view key, const char* text) = delete;

// Begins the body of a request: member `part` has this resource and, as member `scopes`, the list
// whose elements are to be written. end_request() ends the list and the body.
base::json_text begin_request(std::string_view part, std::string_view scopes,
                              std::string_view resource);
std::string end_request(base::json_text out);

// The number of records that the collector has refused, by the member `key` of its answer; 0 if the
// text is not OTLP's JSON. At most `most`.
std::uint64_t rejected_in(std::string_view answer, std::string_view key,
                          std::uint64_t most) noexcept;

}  // namespace troupe::otlp
