#include "troupe/http/request.hpp"

#include <utility>

#include "http/server/calls/one_at_a_time.hpp"
#include "http/values/cookie_pairs.hpp"
#include "troupe/base/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/task/when.hpp"

namespace troupe::http {

namespace {

constexpr const char* is_under_way =
    "troupe: http::request: a read is under way already: await it first";

}  // namespace

std::optional<std::string> request::query_value(std::string_view name) const {
  std::string_view left = query();
  std::string decoded;
  while (!left.empty()) {
    const std::size_t end = left.find('&');
    const std::string_view pair = left.substr(0, end);
    const std::size_t equals = pair.find('=');
    decoded.clear();
    if (decode_percent(pair.substr(0, equals), decoded, true) && decoded == name) {
      decoded.clear();
      if (equals == std::string_view::npos) return decoded;
      if (decode_percent(pair.substr(equals + 1), decoded, true)) return decoded;
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
  for (const http::field field : fields()) {
    if (!same_word(field.name, "Cookie")) continue;
    for (std::string_view left = field.value; !left.empty();) {
      const cookie_pair pair = take_cookie_pair(left);
      if (pair.name == name && at-- == 0) return pair.value;
    }
  }
  return std::nullopt;
}

namespace values {

void kept_share::keep(request& asked, std::size_t bytes, std::size_t files) {
  if (all_ == nullptr) {
    if (asked.kept_ == nullptr) asked.kept_ = std::make_shared<kept_of_body>();
    all_ = asked.kept_;
  }
  const bool tells = bytes > told_ + untold_bytes || files > files_;
  count(bytes, files);
  if (!tells) return;
  told_ = bytes;
  asked.source_->count_kept();
}

// The differences wrap, and the sums are right.
void kept_share::count(std::size_t bytes, std::size_t files) noexcept {
  if (all_ == nullptr) return;
  // order: relaxed (both)  statistics; they publish nothing
  all_->bytes.fetch_add(bytes - bytes_, std::memory_order_relaxed);
  all_->files.fetch_add(files - files_, std::memory_order_relaxed);
  bytes_ = bytes;
  files_ = files;
}

}  // namespace values

task<> request::collect() {
  if (std::exchange(is_taken_, false)) collected_.clear();
  for (;;) {
    const std::string_view piece = co_await source_->next_piece();
    if (piece.empty()) co_return;
    collected_ += piece;
  }
}

task<std::string_view> request::read_all() {
  if (!body_.empty()) co_return body_;
  {
    const one_at_a_time alone(is_collecting_, is_under_way);
    co_await collect();
  }
  co_await tasks::before_taking();
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up) throw cancelled("troupe: http: the read was given up");
  body_ = collected_;
  co_return body_;
}

// Returns the pieces of a read_all() that was given up, and then the rest of the body.
task<std::string_view> request::read_behind_collected() {
  if (body_.empty() && !is_taken_) {
    const one_at_a_time alone(is_collecting_, is_under_way);
    const bool given_up = co_await submissions::being_cancelled();
    if (given_up) throw cancelled("troupe: http: the read was given up");
    is_taken_ = true;
    co_return collected_;
  }
  if (std::exchange(is_taken_, false)) collected_.clear();
  co_return co_await source_->next_piece();
}

}  // namespace troupe::http
