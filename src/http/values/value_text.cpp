#include "troupe/http/values/value_text.hpp"

#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

status_error::status_error(int status, std::string detail)
    : error("troupe: http: " + std::to_string(status) + (detail.empty() ? "" : ": ") + detail),
      status_(status),
      detail_(std::move(detail)) {
  if (status < 400 || status > 599) {
    throw usage_error("troupe: http::status_error: " + std::to_string(status) +
                      " is no status of an error: use 400 to 599");
  }
}

}  // namespace troupe::http

namespace troupe::http::values {

namespace {

[[noreturn]] void fail(const origin& source, std::string_view why) {
  throw status_error(
      400, std::string(source.kind) + " '" + std::string(source.name) + "'" + std::string(why));
}

}  // namespace

void fail_unfit(const origin& source, const std::string& wanted) {
  fail(source, wanted.empty() ? " is not valid" : ": " + wanted + " is needed");
}
void fail_missing(const origin& source) { fail(source, " is missing"); }
void fail_malformed(const origin& source) { fail(source, " is not encoded correctly"); }

bool next_pair(std::string_view& left, const origin& source, std::string& value) {
  while (!left.empty()) {
    const std::size_t end = left.find('&');
    const std::string_view pair = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    const std::size_t equals = pair.find('=');
    value.clear();
    if (!decode_percent(pair.substr(0, equals), value, true) || value != source.name) continue;
    value.clear();
    if (equals != std::string_view::npos && !decode_percent(pair.substr(equals + 1), value, true))
      fail_malformed(source);
    return true;
  }
  return false;
}

}  // namespace troupe::http::values
