// line: the text of one line of the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/log/log.hpp"

namespace troupe::log {

inline constexpr std::size_t value_bytes_max = 8192;  // longer texts are cut off

class line {
 public:
  explicit line(form as) noexcept : as_(as) {}

  void begin(level of, std::string_view logger, std::string_view text);
  void add(const field& one);
  // The actor and the trace in which the calling thread runs, and the line break.
  void end();
  const std::string& text() const noexcept { return text_; }

 private:
  void add_name(std::string_view name);
  void add_number(double number);
  void add_value(const field& one);
  void add_text(std::string_view text);
  void add_plain(std::string_view text);
  void add_member(std::string_view name, std::string_view value);
  void add_duration(double seconds);
  void add_error(const std::exception_ptr& what);

  const form as_;
  bool has_fields_ = false;
  std::string text_;
};

}  // namespace troupe::log
