#include "otlp/requests.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <system_error>

#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t answer_bytes_max = 64 * 1024;

bool may_be_taken_later(int status) noexcept {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// Retry-After in seconds; a date counts as none.
std::chrono::milliseconds pause_in(std::string_view field) noexcept {
  unsigned seconds = 0;
  const auto read = std::from_chars(field.data(), field.data() + field.size(), seconds);
  if (read.ec != std::errc() || read.ptr != field.data() + field.size()) return 0ms;
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), pause_max);
}

}  // namespace

constinit base::side_channel span_export("the export by OTLP"),
    metrics_export("the export of metrics by OTLP"), logs_export("the export of logs by OTLP");

http::client_request request_of(const std::string& url, const request_fields& fields) {
  http::client_request request("POST", url);
  for (const auto& [name, value] : fields) request.field(name, value);
  return request;
}

bool may_be_asked(const std::string& url, const request_fields& fields, std::string& why) {
  try {
    static_cast<void>(http::url::parse(url));
    static_cast<void>(request_of(url, fields));
    return true;
  } catch (const std::exception& failed) {
    why = failed.what();
    return false;
  }
}

task<outcome> post(http::client web, http::client_request asked, std::uint64_t count,
                   std::string_view rejected_key, time_span at_most, std::stop_token stop) {
  outcome result;
  try {
    http::client_response answer =
        co_await web.send(std::move(asked)).timeout(at_most).stop(std::move(stop));
    result.taken = answer.ok();
    result.again = may_be_taken_later(answer.status());
    result.asks_for = pause_in(answer.field("Retry-After"));
    if (!result.taken)
      result.why = "the collector answers with status " + std::to_string(answer.status());
    // The text of the answer is of interest, but not needed.
    const std::string text = co_await answer.read_all();
    result.rejected = rejected_in(text, rejected_key, count);
  } catch (const std::exception& failed) {
    if (!result.taken && result.why.empty()) result.why = failed.what();
  }
  co_return result;
}

http::client_options client_options_of(const exporter_options& chosen) {
  http::client_options options;
  options.tls = chosen.tls;
  options.body_bytes = answer_bytes_max;
  options.redirects = 0;
  options.user_agent = "troupe-otlp";
  return options;
}

std::string resource_of(const exporter_options& options) {
  base::json_text out;
  out.open('{').key("attributes").open('[');
  add_attribute(out, "service.name", std::string_view(options.service_name));
  for (const auto& [key, value] : options.attributes)
    add_attribute(out, key, std::string_view(value));
  constexpr std::pair<std::string_view, std::string_view> own[] = {
      {"telemetry.sdk.language", "cpp"},
      {"telemetry.sdk.name", "troupe"},
      {"telemetry.sdk.version", TROUPE_VERSION}};
  for (const auto& [key, value] : own) add_attribute(out, key, value);
  out.close(']').close('}');
  return std::move(out).take();
}

}  // namespace troupe::otlp
