#include "troupe/http/request.hpp"

#include "http/values/cookie_pairs.hpp"
#include "troupe/base/error.hpp"

namespace troupe::http {

std::optional<std::string> request::query_value(std::string_view name) const {
  std::string_view left = query();
  std::string decoded;
  while (!left.empty()) {
    const std::size_t end = left.find('&');
    const std::string_view one = left.substr(0, end);
    const std::size_t equals = one.find('=');
    decoded.clear();
    if (decode_percent(one.substr(0, equals), decoded, true) && decoded == name) {
      decoded.clear();
      if (equals == std::string_view::npos) return decoded;
      if (decode_percent(one.substr(equals + 1), decoded, true)) return decoded;
      return std::nullopt;
    }
    if (end == std::string_view::npos) break;
    left.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::string_view request::path_text(std::string_view name) const {
  for (std::size_t i = 0; i < path_values_->count; ++i) {
    if (path_values_->names[i] == name) return path_values_->value[i];
  }
  throw usage_error("troupe: http::request::path: the route's pattern has no parameter {" +
                    std::string(name) + "}");
}

std::optional<std::string_view> request::cookie(std::string_view name) const noexcept {
  return nth_cookie(name, 0);
}

std::optional<std::string_view> request::nth_cookie(std::string_view name,
                                                    std::size_t at) const noexcept {
  for (const http::field one : fields()) {
    if (!same_word(one.name, "Cookie")) continue;
    for (std::string_view left = one.value; !left.empty();) {
      const cookie_pair pair = take_cookie_pair(left);
      if (pair.name == name && at-- == 0) return pair.value;
    }
  }
  return std::nullopt;
}

task<std::string_view> request::read_all() {
  if (body_.empty()) {
    for (;;) {
      const std::string_view piece = co_await source_->next_piece();
      if (piece.empty()) break;
      collected_ += piece;
    }
    body_ = collected_;
  }
  co_return body_;
}

}  // namespace troupe::http
