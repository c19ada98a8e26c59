// header_lines: the lines of a head or a trailer to send.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/fields.hpp"

namespace troupe::http::h2 {

class header_lines {
 public:
  // The name is made lower-case.
  void add(std::string_view name, std::string_view value);
  // Adds lines "Name: value\r\n". Leaves out fields that HTTP/2 does not allow.
  void add_lines(std::string_view lines);
  void clear() noexcept {
    text_.clear();
    positions_.clear();
  }
  http::fields fields() const noexcept { return {text_.data(), positions_}; }
  std::size_t bytes() const noexcept {
    return text_.capacity() + positions_.capacity() * sizeof(http::fields::position);
  }

 private:
  std::string text_;
  std::vector<http::fields::position> positions_;
};

}  // namespace troupe::http::h2
