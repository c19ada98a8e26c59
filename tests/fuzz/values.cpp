#include "fuzz/values.hpp"

#include <algorithm>

#include "http/values/cookie_pairs.hpp"
#include "troupe/http/values/accept.hpp"
#include "troupe/http/values/media_type.hpp"
#include "troupe/http/values/multipart.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/http/values/value_text.hpp"

namespace troupe::test {

namespace {

// The parts as text, or the status of the error. A step without progress would be one too many.
std::string parts_of(std::string_view body, std::size_t piece) {
  using event = http::multipart_parser::event;
  std::string all, input;
  http::multipart_parser parser("b");
  try {
    for (std::size_t steps = 0; steps < 20 * body.size() + 100'000; ++steps) {
      const auto step = parser.next(input);
      if (step.consumed > input.size()) return "it consumed more than there is";
      if (step.what == event::part) {
        const http::multipart_part& head = parser.part();
        all +=
            "<" + head.name + "|" + head.file_name + "|" + head.type + (head.is_file ? "|" : ":");
      }
      all += step.data;
      if (step.what == event::part_end) all += ">";
      input.erase(0, step.consumed);
      if ((step.what != event::need_more && step.what != event::end) || step.consumed != 0)
        continue;
      if (body.empty()) {
        parser.check_end();
        return all;
      }
      input += body.substr(0, piece);
      body.remove_prefix(std::min(piece, body.size()));
    }
  } catch (const http::status_error& e) {
    return std::to_string(e.status());
  }
  return "it makes no progress";
}

// Returns whether all pairs were read, and are parts of the text.
bool reads_fields(std::string_view text) {
  std::size_t pairs = 0;
  for (std::string_view left = text; !left.empty(); ++pairs) {
    const http::cookie_pair one = http::take_cookie_pair(left);
    if (one.name.size() + one.value.size() > text.size()) return false;
  }
  std::string value;
  try {
    for (std::string_view left = text; http::values::next_pair(left, {"", "a"}, value);) {
      if (value.size() > text.size()) return false;
    }
  } catch (const http::status_error&) {
  }
  if (http::quality_of_type(text, "text/html") > 1'000) return false;
  if (http::quality_of_coding(text, "gzip") > 1'000) return false;
  return http::parameter_of_media(text, "boundary").size() <= text.size() &&
         http::type_of_media(text).size() <= text.size() && pairs <= text.size();
}

}  // namespace

std::string values_difference(std::string_view input) {
  if (input.empty()) return "";
  const std::size_t piece = static_cast<unsigned char>(input.front()) % 16 + 1u;
  input.remove_prefix(1);
  if (!reads_fields(input)) return "a field has more than there is";
  const std::string whole = parts_of(input, input.size() + 1), cut = parts_of(input, piece);
  if (whole == cut && whole.substr(0, 3) != "it ") return "";
  return "at once: " + whole + "\nin pieces of " + std::to_string(piece) + ": " + cut;
}

}  // namespace troupe::test
