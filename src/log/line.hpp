// line: the text of one line of the log, and its parts if they are kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/json_text.hpp"
#include "log/records.hpp"
#include "troupe/log/log.hpp"

namespace troupe::log {

inline constexpr std::size_t value_bytes_max = 8192;  // longer texts are cut off

class line {
 public:
  // `kept` gets the parts of the line, but for its logger; null: they are not kept.
  explicit line(form as, record* kept = nullptr) noexcept : as_(as), kept_(kept) {}
  line(const line&) = delete;
  line& operator=(const line&) = delete;

  void begin(level severity, std::string_view logger, std::string_view text);
  void add(const field& added);
  // The actor and the trace in which the calling thread runs, and the line break.
  void end();
  const std::string& text() const noexcept { return text_; }

 private:
  void add_name(std::string_view name);
  template <class Value>
  void add_bare(Value value);
  void add_number(double number);
  void add_value(const field& shown);
  void add_text(std::string_view text);
  void add_plain(std::string_view text);
  void add_member(std::string_view name, std::string_view value);
  void add_duration(double seconds);
  void keep(const field& given);

  const form as_;
  record* const kept_;
  bool has_fields_ = false;
  std::string text_;
  base::json_writer<std::string&> json_{text_};  // for form::json
};

}  // namespace troupe::log
