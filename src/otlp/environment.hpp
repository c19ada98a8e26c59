// environment: the options of an exporter that the environment names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/otlp/options.hpp"

namespace troupe::otlp {

using key_values = std::vector<std::pair<std::string, std::string>>;

// Reads "key=value,key=value", percent-encoded; spaces around keys and values, and empty parts, are
// skipped. Of equal keys the last one counts. Returns nothing if a part is malformed.
std::optional<key_values> read_key_values(std::string_view text);

// The variables of a kind of data that is sent only if they ask for it.
struct signal_variables {
  const char* exporter_name;  // OTEL_..._EXPORTER
  std::string_view path;      // behind the endpoint of all kinds
  std::string exporter;       // its value, in small letters; empty: unset
  const char* exact;          // the endpoint of this kind; null: unset
  const char* base;           // the endpoint of all kinds; null: unset
};
// Sets `url` by the variables. Returns the text of their error, or an empty text.
std::string choose_url(const signal_variables& said, std::string& url);

// Sets rate and parent_based by the two variables; null if they are unset. Returns the defect of
// the variables, or an empty text.
std::string read_sampler(const char* sampler, const char* argument, exporter_options& options);

}  // namespace troupe::otlp
