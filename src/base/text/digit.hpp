// digit: whether a letter is one of 0 to 9, without the locale that std::isdigit asks.
#pragma once

namespace troupe::base {

constexpr bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

}  // namespace troupe::base
