// requests: whether a URL and fields are those of a request, and the channels that report failures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/side_channels/side_channel.hpp"
#include "troupe/http/client.hpp"

namespace troupe::otlp {

// The collector, the thread that sends to it, and the variables that name it.
extern constinit base::side_channel span_export;
// The collector of metrics, which may fail while the collector of spans works.
extern constinit base::side_channel metrics_export;

using request_fields = std::vector<std::pair<std::string, std::string>>;

// A request without a body. Throws if url and fields are not those of a request.
http::client_request request_of(const std::string& url, const request_fields& fields);
// Whether they are; if not, says why.
bool may_be_asked(const std::string& url, const request_fields& fields, std::string& why);

}  // namespace troupe::otlp
