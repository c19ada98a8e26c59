#include "troupe/http/fields.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text/eight_letters.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::http {

namespace {

constexpr std::array<std::string_view, 10> method_names{
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", ""};

// Of one size, which is more than eight.
TROUPE_NOINLINE bool is_same_long_word(std::string_view a, std::string_view b) noexcept {
  const std::size_t last = a.size() - 8;
  for (std::size_t at = 0; at < last; at += 8) {
    if (!base::is_same_but_case(base::load_eight(a.data() + at), base::load_eight(b.data() + at)))
      return false;
  }
  return base::is_same_but_case(base::load_eight(a.data() + last),
                                base::load_eight(b.data() + last));
}

constexpr std::pair<int, std::string_view> reasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

std::string_view name_of(method verb) noexcept {
  return method_names[static_cast<std::size_t>(verb)];
}

method method_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < method_names.size(); ++i) {
    if (method_names[i] == name) return static_cast<method>(i);
  }
  return method::other;
}

std::string_view reason_of(int status) noexcept {
  for (const auto& [code, words] : reasons) {
    if (code == status) return words;
  }
  return "";
}

bool same_word(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (a.size() > 8) return is_same_long_word(a, b);
  return base::is_same_but_case(base::load_few(a), base::load_few(b));
}

bool lists_word(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view listed = list.substr(0, comma);
    while (!listed.empty() && (listed.front() == ' ' || listed.front() == '\t'))
      listed.remove_prefix(1);
    while (!listed.empty() && (listed.back() == ' ' || listed.back() == '\t'))
      listed.remove_suffix(1);
    if (same_word(listed, word)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

std::string_view take_field_name(std::string_view& lines) noexcept {
  const std::string_view line = lines.substr(0, lines.find('\n'));
  lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  return line.substr(0, line.find(':'));
}

std::string_view fields::operator[](std::string_view name) const noexcept {
  for (const field field : *this) {
    if (same_word(field.name, name)) return field.value;
  }
  return "";
}

std::string fields::list(std::string_view name) const {
  std::string all;
  for (const field field : *this) {
    if (!same_word(field.name, name)) continue;
    if (!all.empty()) all += ", ";
    all += field.value;
  }
  return all;
}

bool fields::has(std::string_view name) const noexcept {
  for (const field field : *this) {
    if (same_word(field.name, name)) return true;
  }
  return false;
}

std::size_t fields::count(std::string_view name) const noexcept {
  std::size_t found = 0;
  for (const field field : *this) found += same_word(field.name, name) ? 1 : 0;
  return found;
}

}  // namespace troupe::http
