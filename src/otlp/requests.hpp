// requests: whether a URL and fields fit a request, requests and their outcome, and the
// channels that report failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/side_channels/side_channel.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/http/client.hpp"
#include "troupe/otlp/options.hpp"
#include "troupe/task/task.hpp"

namespace troupe::otlp {

// The collector, the thread that sends to it, and the variables that name it.
extern constinit base::side_channel span_export;
// The collector of metrics, which may fail while the collector of spans works.
extern constinit base::side_channel metrics_export;
// The collector of logs, and the thread that sends to it.
extern constinit base::side_channel logs_export;

using request_fields = std::vector<std::pair<std::string, std::string>>;

// A request without a body. Throws if url and fields do not form a valid request.
http::client_request request_of(const std::string& url, const request_fields& fields);
// Whether url and fields form a valid request; if not, sets `why`.
bool may_be_asked(const std::string& url, const request_fields& fields, std::string& why);

// The outcome of a request.
struct outcome {
  outcome() noexcept {}
  bool taken = false;
  bool again = true;                      // it may be taken later
  std::uint64_t rejected = 0;             // of those in a batch that was taken
  std::chrono::milliseconds asks_for{0};  // the collector, as a pause
  std::string why;                        // it was not taken
};

// The longest pause before another try.
inline constexpr std::chrono::milliseconds pause_max = std::chrono::seconds(30);

// Sends a request with `count` records, and reads the number of rejected ones from the answer's
// member `rejected_key`. Throws no failure that an outcome can describe.
task<outcome> post(http::client web, http::client_request asked, std::uint64_t count,
                   std::string_view rejected_key, time_span at_most, std::stop_token stop);

http::client_options client_options_of(const exporter_options& chosen);
// The resource, as an object of JSON, which all requests share.
std::string resource_of(const exporter_options& options);

}  // namespace troupe::otlp
