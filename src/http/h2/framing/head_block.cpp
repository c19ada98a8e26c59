#include "http/h2/framing/head_block.hpp"

#include <charconv>

namespace troupe::http::h2 {

head_block::piece head_block::put(std::string_view text) {
  const piece added{static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(text.size())};
  text_ += text;
  return added;
}

// Most requests fit in, so that each takes two blocks of memory.
void head_block::reserve_usual() {
  text_.reserve(256);
  positions_.reserve(8);
}

void head_block::put_field(std::string_view name, std::string_view value) {
  const piece first = put(name), second = put(value);
  positions_.push_back({first.at, first.bytes, second.at, second.bytes});
}

void head_block::add(std::string_view name, std::string_view value, const block_limits& within) {
  constexpr std::size_t overhead = 32;
  bytes_ += name.size() + value.size() + overhead;
  if (wrong_ != fault::none) return;
  if (text_.empty()) reserve_usual();
  const bool is_pseudo = name.starts_with(':');
  if (is_pseudo && name == ":path" && value.size() > within.target_bytes) {
    wrong_ = fault::target_too_long;
  } else if (bytes_ > within.bytes) {
    wrong_ = fault::head_too_large;
  } else if (!is_pseudo && positions_.size() == within.fields) {
    wrong_ = fault::too_many_fields;
  }
  if (wrong_ != fault::none) return;
  if (name == "cookie") {
    if (!cookies_.empty()) cookies_ += "; ";
    cookies_ += value;
  } else if (!is_pseudo) {
    put_field(name, value);
  } else if (name == ":method") {
    method_ = put(value);
  } else if (name == ":path") {
    path_ = put(value);
  } else if (name == ":authority") {
    authority_ = put(value);
  } else if (name == ":scheme") {
    scheme_ = put(value);
  } else if (name == ":protocol") {
    protocol_ = put(value);
  } else if (name == ":status") {
    // nghttp2 has found three digits
    static_cast<void>(std::from_chars(value.data(), value.data() + value.size(), status_));
  }
}

bool head_block::finish() {
  if (!cookies_.empty()) put_field("cookie", cookies_);
  const http::fields all = fields();
  if (authority_.bytes == 0) return true;
  const std::size_t hosts = all.count("host");
  if (hosts > 0) return hosts == 1 && same_word(all["host"], authority());
  const std::string copy(authority());  // the text may move
  put_field("host", copy);
  return true;
}

}  // namespace troupe::http::h2
