#include "troupe/http/values/accept.hpp"

#include <tuple>

#include "http/values/value_parts.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

constexpr quality malformed = 1'001;

// qvalue of RFC 9110, 12.4.2: "0", "0.5", "1.000".
quality read_quality(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return malformed;
  if (text.size() > 1 && text[1] != '.') return malformed;
  quality value = text[0] == '1' ? 1'000 : 0;
  quality digit = 100;
  for (std::size_t i = 2; i < text.size(); ++i, digit /= 10) {
    if (text[i] < '0' || text[i] > '9') return malformed;
    value += digit * static_cast<quality>(text[i] - '0');
  }
  return value;  // above 1'000: malformed, which match_of() skips
}

struct element {
  std::string_view name;
  quality wanted = 1'000;
};

// Takes the first element off a list of Accept or Accept-Encoding.
element take_element(std::string_view& list) noexcept {
  std::string_view left = take_part(list, ',');
  element result{take_part(left, ';')};
  while (!left.empty()) {
    const std::string_view parameter = take_part(left, ';');
    if (parameter.size() > 2 && (parameter[0] | 0x20) == 'q' && parameter[1] == '=')
      result.wanted = read_quality(parameter.substr(2));
  }
  return result;
}

// How exactly a media range matches a type. 3: the same type; 2: "text/*" for "text/html"; 1: "*/*"
// or "*"; 0: no match.
int fits(std::string_view range, std::string_view type) noexcept {
  if (same_word(range, type)) return 3;
  if (range == "*/*" || range == "*") return 1;
  if (!range.ends_with("/*")) return 0;
  range.remove_suffix(1);
  return same_word(range, type.substr(0, range.size())) ? 2 : 0;
}

struct match {
  quality wanted = 0;
  int exactness = 0;
  int place = 0;  // the first element is 0, the second is -1
};

match match_of(std::string_view accept, std::string_view type) noexcept {
  match best;
  for (int place = 0; !accept.empty(); --place) {
    const element ranked = take_element(accept);
    if (ranked.wanted > 1'000) continue;
    const int exactness = fits(ranked.name, type);
    if (exactness > best.exactness) best = {ranked.wanted, exactness, place};
  }
  return best;
}

}  // namespace

quality quality_of_type(std::string_view accept, std::string_view type) noexcept {
  return trimmed(accept).empty() ? 1'000 : match_of(accept, type).wanted;
}

quality quality_of_coding(std::string_view accept_encoding, std::string_view coding) noexcept {
  const match found = match_of(accept_encoding, coding);
  if (found.exactness != 0) return found.wanted;
  return same_word(coding, "identity") ? 1'000 : 0;
}

std::optional<std::size_t> preferred_type(std::string_view accept,
                                          std::span<const std::string_view> types) noexcept {
  if (types.empty()) return std::nullopt;
  if (trimmed(accept).empty()) return 0;
  std::optional<std::size_t> best;
  match wins;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const match found = match_of(accept, types[i]);
    if (found.wanted == 0) continue;
    if (best && std::tie(found.wanted, found.exactness, found.place) <=
                    std::tie(wins.wanted, wins.exactness, wins.place))
      continue;
    best = i;
    wins = found;
  }
  return best;
}

}  // namespace troupe::http
