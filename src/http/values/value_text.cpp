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

[[noreturn]] void fail(const origin& of, std::string_view why) {
  throw status_error(400,
                     std::string(of.kind) + " '" + std::string(of.name) + "'" + std::string(why));
}

}  // namespace

void fail_unfit(const origin& of, const std::string& wanted) {
  fail(of, wanted.empty() ? " is not valid" : ": " + wanted + " is needed");
}
void fail_missing(const origin& of) { fail(of, " is missing"); }
void fail_malformed(const origin& of) { fail(of, " is not encoded correctly"); }

bool next_pair(std::string_view& left, const origin& of, std::string& to) {
  while (!left.empty()) {
    const std::size_t end = left.find('&');
    const std::string_view one = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    const std::size_t equals = one.find('=');
    to.clear();
    if (!decode_percent(one.substr(0, equals), to, true) || to != of.name) continue;
    to.clear();
    if (equals != std::string_view::npos && !decode_percent(one.substr(equals + 1), to, true))
      fail_malformed(of);
    return true;
  }
  return false;
}

}  // namespace troupe::http::values
