// answers: reads the answers of one connection as they come, and compares every byte of their
// bodies.
#pragma once

#include <strings.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "../server_process.hpp"

namespace load {

[[noreturn]] inline void refuse(const std::string& why, std::string_view answer) {
  refuse(why + ": " + std::string(answer.substr(0, 500)));
}

// The length in a head with status 200 and a Content-Length. Throws for any other head.
inline std::size_t length_in(std::string_view head) {
  if (!head.starts_with("HTTP/1.1 200 ")) refuse("not answered 200", head);
  constexpr std::string_view name = "\r\ncontent-length:";
  for (std::size_t at = head.find("\r\n"); at + name.size() < head.size();
       at = head.find("\r\n", at + 2)) {
    if (::strncasecmp(head.data() + at, name.data(), name.size()) == 0) {
      return std::strtoul(head.data() + at + name.size(), nullptr, 10);
    }
  }
  refuse("an answer without Content-Length", head);
}

// A head that equals the last one byte for byte, as nearly all do, is not parsed again. The load
// generator has one core, and must not be what is measured.
class head_memory {
 public:
  bool begins(std::string_view text) const { return !head_.empty() && text.starts_with(head_); }
  std::string_view head() const { return head_; }
  std::size_t length() const { return length_; }
  void keep(std::string_view head) {
    length_ = length_in(head);
    head_ = head;
  }

 private:
  std::string head_;
  std::size_t length_ = 0;
};

class answers {
 public:
  // Returns how many answers ended. Each must have this body; throws when one has not.
  std::size_t take(std::string_view text, std::string_view body, head_memory& last) {
    std::size_t whole = 0;
    while (!text.empty()) {
      if (!in_body_) {
        if (!take_head(text, last)) break;
        if (last.length() != body.size()) refuse("an answer of another length", last.head());
        in_body_ = true;
        at_ = 0;
      }
      const std::size_t part = std::min(text.size(), body.size() - at_);
      if (std::memcmp(text.data(), body.data() + at_, part) != 0) refuse("another body", text);
      text.remove_prefix(part);
      at_ += part;
      if (at_ == body.size()) {
        in_body_ = false;
        ++whole;
      }
    }
    return whole;
  }

 private:
  // Returns false when the head has not come whole.
  bool take_head(std::string_view& text, head_memory& last) {
    if (head_.empty() && last.begins(text)) {
      text.remove_prefix(last.head().size());
      return true;
    }
    const std::size_t had = head_.size();
    head_ += text;
    const std::size_t end = head_.find("\r\n\r\n", had < 3 ? 0 : had - 3);
    if (end == std::string::npos) return false;
    text.remove_prefix(end + 4 - had);
    last.keep(std::string_view(head_).substr(0, end + 4));
    head_.clear();
    return true;
  }

  std::string head_;  // of an answer, as far as it has come
  bool in_body_ = false;
  std::size_t at_ = 0;
};

}  // namespace load
