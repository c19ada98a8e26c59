#include "fuzz/behind_proxy/proxies.hpp"

#include <algorithm>
#include <optional>

#include "http/behind_proxy/proxy_header.hpp"
#include "http/behind_proxy/reports/forwarded.hpp"

namespace troupe::test {
namespace {

using kind = http::proxy_step::kind;

constexpr std::size_t most = 600;

// The header as text, with its length; "" if there is none, or if it is not complete.
std::string text_of(const http::proxy_step& step, const http::proxy_header& header) {
  if (step.outcome != kind::done) return "";
  std::string text = std::to_string(step.bytes) + " ";
  text += static_cast<char>('0' + static_cast<int>(header.from));
  if (header.from == http::proxy_header::origin::address) text += header.client.to_string();
  return text;
}

std::string read_at_once(std::string_view input) {
  http::proxy_header header;
  const http::proxy_step step = http::read_proxy_header(input, most, header);
  if (step.outcome == kind::done && step.bytes > input.size()) return "it is longer than the input";
  return text_of(step, header);
}

std::string read_in_steps(std::string_view input) {
  http::proxy_header header;
  for (std::size_t came = 0;;) {
    const http::proxy_step step = http::read_proxy_header(input.substr(0, came), most, header);
    if (step.outcome != kind::more) {
      if (step.outcome == kind::done && step.bytes != came)
        return "bytes behind the header were read";
      return text_of(step, header);
    }
    if (step.bytes == 0) return "it makes no progress";
    if (came + step.bytes > input.size()) return "";
    came += step.bytes;
  }
}

// What a proxy has appended is found, and the rest is what was there before.
bool finds_appended(std::string_view before, std::string_view appended, bool has_quotes) {
  const std::string list = std::string(before) + "," + std::string(appended);
  std::string_view left = list;
  return http::take_last(left, has_quotes) == appended && left == before;
}

// An address is the same when it is written and read again.
bool is_read_again(const std::optional<endpoint>& one) {
  return !one || http::address_of_entry(one->to_string()) == one;
}

std::string what_is_wrong_with_lists(std::string_view input) {
  if (!finds_appended(input, "for=192.0.2.1", true)) return "what was appended is not found";
  if (!finds_appended(input, "192.0.2.1", false)) return "what was appended is not found";
  for (const bool has_quotes : {true, false}) {
    std::string_view left = input;
    for (std::size_t steps = 0; !left.empty(); ++steps) {
      if (steps > input.size()) return "a list has more elements than characters";
      const std::string_view last = http::take_last(left, has_quotes);
      if (!is_read_again(has_quotes ? http::address_of_element(last)
                                    : http::address_of_entry(last)))
        return "an address changes: " + std::string(last);
    }
  }
  return "";
}

}  // namespace

std::string proxies_difference(std::string_view input) {
  const std::string at_once = read_at_once(input), in_steps = read_in_steps(input);
  if (at_once != in_steps) return "at once: " + at_once + "\nin steps: " + in_steps;
  return what_is_wrong_with_lists(input);
}

}  // namespace troupe::test
