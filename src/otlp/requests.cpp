#include "otlp/requests.hpp"

#include <exception>

namespace troupe::otlp {

constinit base::side_channel span_export("the export of spans");

http::client_request request_of(const exporter_options& chosen) {
  http::client_request made("POST", chosen.url);
  for (const auto& [name, value] : chosen.fields) made.field(name, value);
  return made;
}

bool may_be_asked(const exporter_options& chosen, std::string& why) {
  try {
    static_cast<void>(http::url::parse(chosen.url));
    static_cast<void>(request_of(chosen));
    return true;
  } catch (const std::exception& failed) {
    why = failed.what();
    return false;
  }
}

}  // namespace troupe::otlp
