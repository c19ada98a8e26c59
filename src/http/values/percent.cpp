#include "base/text/hex.hpp"
#include "troupe/http/values/value_text.hpp"

namespace troupe::http {

namespace {

int digit_of(char digit) noexcept {
  return base::hex_value(digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a')
                                                      : digit);
}

}  // namespace

bool decode_percent(std::string_view text, std::string& to, bool plus_is_space) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      to += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
    if (high < 0 || low < 0 || (high | low) == 0) return false;
    to += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

}  // namespace troupe::http
