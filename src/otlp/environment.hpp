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

// Sets metrics_url as OTEL_METRICS_EXPORTER, in small letters, and the endpoints of metrics and of
// all say; null if they are unset. Returns the text of their error, or an empty one.
std::string choose_metrics(std::string_view exporter, const char* exact, const char* base,
                           exporter_options& options);

// Sets rate and parent_based as the two variables say; null if they are unset. Returns what is
// wrong with them, or an empty text.
std::string read_sampler(const char* sampler, const char* argument, exporter_options& options);

}  // namespace troupe::otlp
