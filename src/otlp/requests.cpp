#include "otlp/requests.hpp"

#include <exception>

namespace troupe::otlp {

constinit base::side_channel span_export("the export by OTLP"),
    metrics_export("the export of metrics by OTLP");

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

}  // namespace troupe::otlp
