#include "fuzz/framing.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "troupe/http/parser.hpp"

namespace troupe::test {
namespace {

using http::fault;

// Where our parser is stricter on purpose. A message that it refuses for these reasons has no
// second meaning: Beast leaves the refusal to the program behind it.
bool is_strictness(fault why, const framed& theirs, std::string_view bytes) noexcept {
  switch (why) {
    // A method of more than 32 bytes, or PRI of HTTP/2.
    case fault::bad_start_line:
      return http::method_named(theirs.method) == http::method::other;
    // Control bytes in the quotes of an extension.
    case fault::bad_chunk:
      return bytes.find(';') != std::string_view::npos;
    case fault::bad_target:       // RFC 9112 3.2 has four forms; Beast takes any bytes
    case fault::bad_version:      // HTTP/2.0 and the like: Beast's parser hands them on
    case fault::unknown_method:   // CONNECT, and methods that HTTP does not have
    case fault::target_too_long:  // limits of our own
    case fault::head_too_large:
    case fault::too_many_fields:
    case fault::chunk_line_too_long:
    case fault::chunk_extensions_too_long:
    // RFC 9112 5.2: a server may refuse it; Beast replaces it by a space.
    case fault::folded_field:
    case fault::no_host:  // RFC 9112 3.2: must be answered 400
    case fault::several_hosts:
    case fault::bad_host:
    case fault::bad_length:         // RFC 9110 8.6: the same number twice may be refused
    case fault::length_and_coding:  // RFC 9112 6.3: may be a smuggled request
    case fault::bad_coding:         // RFC 9112 6.1: chunked is the last coding, and used once
    case fault::unknown_coding:
    case fault::bad_trailer:  // RFC 9110 6.5.1: a trailer must not contain framing fields
    case fault::bad_expectation:
      return true;
    default:
      return false;
  }
}

std::string lower(std::string text) {
  for (char& one : text) one = one >= 'A' && one <= 'Z' ? static_cast<char>(one | 0x20) : one;
  return text;
}

// Sorts the fields by name, since Beast puts fields of the same name together.
std::multimap<std::string, std::string> by_name(
    const std::vector<std::pair<std::string, std::string>>& fields) {
  std::multimap<std::string, std::string> sorted;
  for (const auto& [name, value] : fields) sorted.emplace(lower(name), value);
  return sorted;
}

std::string in_words(const framed& one) {
  std::string text = one.method + " " + one.target + " 1." + std::to_string(one.minor_version);
  for (const auto& [name, value] : by_name(one.fields)) text += " {" + name + ": " + value + "}";
  return text + " [" + one.body + "] ends at " + std::to_string(one.end);
}

std::string in_words(const reading& one) {
  std::string text;
  for (const framed& each : one.requests) text += in_words(each) + "; ";
  return text + (one.refused ? "refused: " + one.reason : "wants more");
}

// Our parser skips one empty line before a request (RFC 9112 2.2), and Beast does not.
std::string_view without_empty_line(std::string_view bytes) {
  return bytes.starts_with("\r\n") ? bytes.substr(2) : bytes;
}

// Where Beast is stricter than our parser, on purpose.
bool is_laxness(const reading& theirs, const framed& ours) {
  // A field Connection that is no list of tokens: it contains none of the words that our parser
  // knows, and does not affect the framing.
  if (theirs.reason == "bad value") {
    return std::ranges::any_of(ours.fields, [](const auto& one) {
      const std::string name = lower(one.first);
      return name == "connection" || name == "proxy-connection";
    });
  }
  // A parser that ignores the extensions of a chunk (RFC 9112 7.1.1) need not check them: an
  // extension ends with its line.
  return theirs.reason == "bad chunk extension";
}

std::string compare(std::string_view bytes, const framed* ours, const reading& whole) {
  const reading theirs = by_beast(without_empty_line(bytes));
  const std::size_t skipped = bytes.size() - without_empty_line(bytes).size();
  if (ours != nullptr) {
    if (theirs.refused && is_laxness(theirs, *ours)) return "";
    if (theirs.requests.empty())
      return "we read " + in_words(*ours) + ", and Beast: " + in_words(theirs);
    framed both = theirs.requests.front();
    both.end += skipped;
    return in_words(*ours) == in_words(both)
               ? ""
               : "we read " + in_words(*ours) + ", and Beast " + in_words(both);
  }
  if (theirs.requests.empty()) return "";
  // Our parser refuses the preface of HTTP/2, 24 bytes, when it is whole. Input that only begins
  // like it is refused where it differs.
  if (!whole.refused && theirs.requests.front().method == "PRI") return "";
  if (!whole.refused) return "we want more, and Beast has read " + in_words(theirs);
  return is_strictness(whole.why, theirs.requests.front(),
                       bytes.substr(0, theirs.requests.front().end + skipped))
             ? ""
             : "we refuse: " + whole.reason + ", and Beast reads " + in_words(theirs);
}

}  // namespace

reading by_us(std::string_view bytes, std::span<const std::size_t> arrivals) {
  reading all;
  http::parser parser(http::side::requests);
  std::string input;
  std::size_t given = 0, next = 0, at = 0;
  framed one;
  while (all.requests.size() < requests_max) {
    const http::parser::step step = parser.next(input);
    one.body += step.body;
    if (step.what == http::parser::event::head) {
      const http::message_head& head = parser.head();
      one.method = head.method_name;
      one.target = head.target;
      one.minor_version = head.minor_version;
      one.last = !head.keep_alive;
      for (const http::field field : head.fields)
        one.fields.emplace_back(std::string(field.name), std::string(field.value));
    }
    if (step.what == http::parser::event::refused) {
      all.refused = true;
      all.why = parser.why();
      all.reason = http::text_of(parser.why());
      break;
    }
    at += step.consumed;
    if (step.what == http::parser::event::end) {
      for (const http::field field : parser.trailer())
        one.fields.emplace_back(std::string(field.name), std::string(field.value));
      one.end = at;
      all.requests.push_back(std::exchange(one, {}));
    }
    input.erase(0, step.consumed);
    if (step.what != http::parser::event::need_more) continue;
    if (given == bytes.size()) break;
    const std::size_t upto =
        next < arrivals.size() ? std::clamp(arrivals[next++], given, bytes.size()) : bytes.size();
    input.append(bytes.substr(given, upto - given));
    input.shrink_to_fit();  // the bytes now lie at another address
    given = upto;
  }
  return all;
}

std::string difference(std::string_view bytes) {
  const reading ours = by_us(bytes);
  std::vector<std::size_t> each;
  for (std::size_t at = 1; at < bytes.size(); ++at) each.push_back(at);
  const std::array<std::size_t, 2> parts{bytes.size() / 3, bytes.size() / 3 * 2};
  for (const std::span<const std::size_t> arrivals :
       {std::span<const std::size_t>(each), std::span<const std::size_t>(parts)}) {
    if (const reading again = by_us(bytes, arrivals); in_words(again) != in_words(ours)) {
      return "whole: " + in_words(ours) + ", in parts: " + in_words(again);
    }
  }
  if (!beast_is_here()) return "";
  std::size_t begin = 0;
  for (const framed& one : ours.requests) {
    framed here = one;
    here.end -= begin;
    if (std::string how = compare(bytes.substr(begin), &here, ours); !how.empty()) return how;
    if (one.last) return "";  // bytes behind the last request are not read
    begin = one.end;
  }
  return ours.requests.size() == requests_max ? "" : compare(bytes.substr(begin), nullptr, ours);
}

}  // namespace troupe::test
