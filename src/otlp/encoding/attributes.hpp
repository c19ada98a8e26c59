// attributes: parts that all requests share, as OTLP's JSON, and the answer of a collector.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::otlp {

void add_hex(std::string& out, std::span<const std::uint8_t> bytes);
// A key with its value, as an object.
void add_attribute(std::string& out, std::string_view key, std::string_view text);
void add_attribute(std::string& out, std::string_view key, std::int64_t number);
void add_attribute(std::string& out, std::string_view key, bool truth);
void add_attribute(std::string& out, std::string_view key, double number);
void add_attribute(std::string& out, std::string_view key, const char* text) = delete;

// How many records the collector says it has refused, by the member `key` of its answer; 0 if the
// text is anything else than OTLP's JSON. At most `most`.
std::uint64_t rejected_in(std::string_view answer, std::string_view key,
                          std::uint64_t most) noexcept;

}  // namespace troupe::otlp
