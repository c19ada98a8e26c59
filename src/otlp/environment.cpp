#include "otlp/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "otlp/requests.hpp"
#include "troupe/http/request.hpp"

namespace troupe::otlp {
namespace {

const char* value_of(const char* name) noexcept {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

std::string_view without_spaces(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string in_small_letters(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lowered;
}

// A number from 0 to 1.
std::optional<double> rate_in(std::string_view text) noexcept {
  double rate = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return rate >= 0 && rate <= 1 ? std::optional(rate) : std::nullopt;
}

// The variables that are malformed, as one sentence: a channel reports one failure, not many.
class complaints {
 public:
  void add(std::string_view why) {
    if (why.empty()) return;
    if (!all_.empty()) all_ += "; ";
    all_ += why;
  }
  void report() const noexcept {
    if (!all_.empty())
      span_export.failed(all_, 0, "such a variable counts as unset; correct it in the environment");
  }

 private:
  std::string all_;
};

void read_endpoint(exporter_options& options, complaints& bad) {
  if (const char* exact = value_of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) {
    options.url = exact;
  } else if (const char* base = value_of("OTEL_EXPORTER_OTLP_ENDPOINT")) {
    options.url = base;
    while (options.url.ends_with('/')) options.url.pop_back();
    options.url += "/v1/traces";
  }
  if (std::string why; !may_be_asked(options.url, options.fields, why)) {
    bad.add(options.url + ": " + why + " (the endpoint must be http://HOST:PORT)");
    options.url = exporter_options().url;
  }
}

// Headers have secrets: an error text leaves out their values, and spans and metrics may go to
// collectors that do not trust each other.
void read_headers(const char* name, const char* text, const std::string& url,
                  request_fields& fields, complaints& bad) {
  if (text == nullptr) {
    name = "OTEL_EXPORTER_OTLP_HEADERS";
    text = value_of("OTEL_EXPORTER_OTLP_HEADERS");
  }
  if (text == nullptr) return;
  std::string why;
  if (std::optional<key_values> read = read_key_values(text)) fields = std::move(*read);
  if (!fields.empty() && may_be_asked(url, fields, why)) return;
  fields.clear();
  bad.add(std::string(name) + " is no list NAME=VALUE,NAME=VALUE of header fields");
}

std::string in_small_letters(const char* text) {
  return in_small_letters(std::string_view(text == nullptr ? "" : text));
}

void read_metrics(exporter_options& options, complaints& bad) {
  bad.add(choose_url(
      {"OTEL_METRICS_EXPORTER", "/v1/metrics", in_small_letters(value_of("OTEL_METRICS_EXPORTER")),
       value_of("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), value_of("OTEL_EXPORTER_OTLP_ENDPOINT")},
      options.metrics_url));
  if (const char* const text = value_of("OTEL_METRIC_EXPORT_INTERVAL")) {
    std::int64_t ms = 0;
    const char* const end = text + std::string_view(text).size();
    const auto read = std::from_chars(text, end, ms);
    if (read.ec == std::errc() && read.ptr == end && ms > 0) {
      options.metrics_interval = std::chrono::milliseconds(ms);
    } else {
      bad.add("OTEL_METRIC_EXPORT_INTERVAL=" + std::string(text) +
              " is no number of milliseconds, which must be more than 0");
    }
  }
  if (!options.metrics_url.empty())
    read_headers("OTEL_EXPORTER_OTLP_METRICS_HEADERS",
                 value_of("OTEL_EXPORTER_OTLP_METRICS_HEADERS"), options.metrics_url,
                 options.metrics_fields, bad);
}

void read_logs(exporter_options& options, complaints& bad) {
  bad.add(choose_url(
      {"OTEL_LOGS_EXPORTER", "/v1/logs", in_small_letters(value_of("OTEL_LOGS_EXPORTER")),
       value_of("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"), value_of("OTEL_EXPORTER_OTLP_ENDPOINT")},
      options.logs_url));
  if (!options.logs_url.empty())
    read_headers("OTEL_EXPORTER_OTLP_LOGS_HEADERS", value_of("OTEL_EXPORTER_OTLP_LOGS_HEADERS"),
                 options.logs_url, options.logs_fields, bad);
}

void read_resource(exporter_options& options, complaints& bad) {
  if (const char* text = value_of("OTEL_RESOURCE_ATTRIBUTES")) {
    if (std::optional<key_values> read = read_key_values(text)) {
      for (auto& [key, value] : *read) {
        if (key == "service.name") options.service_name = value;
        // These are the library's own.
        if (key == "service.name" || key.starts_with("telemetry.sdk.")) continue;
        options.attributes.emplace_back(std::move(key), std::move(value));
      }
    } else {
      bad.add("OTEL_RESOURCE_ATTRIBUTES=" + std::string(text) +
              " is no list KEY=VALUE,KEY=VALUE, percent-encoded");
    }
  }
  if (const char* name = value_of("OTEL_SERVICE_NAME")) options.service_name = name;
}

}  // namespace

std::optional<key_values> read_key_values(std::string_view text) {
  key_values pairs;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = without_spaces(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    std::string key, value;
    if (!http::decode_percent(without_spaces(part.substr(0, equals)), key) || key.empty() ||
        !http::decode_percent(without_spaces(part.substr(equals + 1)), value))
      return std::nullopt;
    std::erase_if(pairs, [&](const auto& before) { return before.first == key; });
    pairs.emplace_back(std::move(key), std::move(value));
  }
  return pairs;
}

std::string choose_url(const signal_variables& said, std::string& url) {
  url.clear();
  if (said.exporter == "none") return {};
  if (!said.exporter.empty() && said.exporter != "otlp")
    return std::string(said.exporter_name) + '=' + said.exporter + " is none of otlp and none";
  std::string chosen;
  if (said.exact != nullptr) {
    chosen = said.exact;
  } else if (said.exporter == "otlp") {
    chosen = said.base == nullptr ? "http://127.0.0.1:4318" : said.base;
    while (chosen.ends_with('/')) chosen.pop_back();
    chosen += said.path;
  }
  std::string why;
  if (!chosen.empty() && !may_be_asked(chosen, {}, why))
    return chosen + ": " + why + " (the endpoint must be http://HOST:PORT)";
  url = std::move(chosen);
  return {};
}

std::string read_sampler(const char* sampler, const char* argument, exporter_options& options) {
  std::string_view rest = "traceidratio";  // OTEL_TRACES_SAMPLER_ARG alone is a rate
  const std::string name = sampler == nullptr ? std::string() : in_small_letters(sampler);
  bool parent_based = true;
  if (sampler != nullptr) {
    constexpr std::string_view prefix = "parentbased_";
    parent_based = name.starts_with(prefix);
    rest = std::string_view(name).substr(parent_based ? prefix.size() : 0);
  }
  if (rest != "always_on" && rest != "always_off" && rest != "traceidratio")
    return "OTEL_TRACES_SAMPLER=" + std::string(sampler) +
           " is none of always_on, always_off, traceidratio, and these behind parentbased_";
  options.parent_based = parent_based;
  options.rate = rest == "always_off" ? 0 : 1;
  if (rest != "traceidratio" || argument == nullptr) return {};
  const std::optional<double> rate = rate_in(argument);
  if (!rate)
    return "OTEL_TRACES_SAMPLER_ARG=" + std::string(argument) + " is no number from 0 to 1";
  options.rate = *rate;
  return {};
}

exporter_options exporter_options::from_environment() {
  exporter_options options;
  complaints bad;
  read_endpoint(options, bad);
  read_headers("OTEL_EXPORTER_OTLP_TRACES_HEADERS", value_of("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
               options.url, options.fields, bad);
  read_metrics(options, bad);
  read_logs(options, bad);
  read_resource(options, bad);
  bad.add(
      read_sampler(value_of("OTEL_TRACES_SAMPLER"), value_of("OTEL_TRACES_SAMPLER_ARG"), options));
  bad.report();
  return options;
}

}  // namespace troupe::otlp
