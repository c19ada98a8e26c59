// requests: whether the options are those of a request, and the channel that reports failures.
#pragma once

#include <string>

#include "base/side_channels/side_channel.hpp"
#include "troupe/http/client.hpp"
#include "troupe/otlp/exporter.hpp"

namespace troupe::otlp {

// The collector, the thread that sends to it, and the variables that name it.
extern constinit base::side_channel span_export;

// A request without a body. Throws if the options are not those of a request.
http::client_request request_of(const exporter_options& chosen);
// Whether url and fields are those of a request; if not, says why.
bool may_be_asked(const exporter_options& chosen, std::string& why);

}  // namespace troupe::otlp
