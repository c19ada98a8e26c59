#include "base/text/eight_letters.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::base {
namespace {

char lower_of(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

TEST(eight_letters, are_compared_without_the_case_of_letters_alone) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      std::string left = "aZ@[`{\xe1\xc1", right = "Az@[`{\xe1\xc1";
      const std::size_t at = static_cast<std::size_t>(first + second) % 8;
      left[at] = static_cast<char>(first);
      right[at] = static_cast<char>(second);
      EXPECT_EQ(is_same_but_case(load_eight(left.data()), load_eight(right.data())),
                lower_of(left[at]) == lower_of(right[at]))
          << first << " and " << second;
    }
  }
}

TEST(eight_letters, each_character_is_found_at_each_position) {
  for (int number = 0; number < 256; ++number) {
    const char letter = static_cast<char>(number);
    for (std::size_t at = 0; at < 8; ++at) {
      for (const char other : {'m', 'M', '\0', '\x7f', '\xff'}) {
        std::string text(8, other);
        text[at] = letter;
        const std::uint64_t word = load_eight(text.data());
        EXPECT_EQ(has_letter(word, '#'), text.find('#') != std::string::npos) << number;
        EXPECT_EQ(has_beyond_ascii(word), number > 127 || other == '\xff') << number;
        const auto is_less = [](char tested) { return static_cast<unsigned char>(tested) < 0x21; };
        EXPECT_EQ(has_less(word, 0x21), is_less(letter) || is_less(other)) << number;
      }
    }
  }
}

TEST(eight_letters, few_characters_are_followed_by_zeros) {
  const std::string text =
      "\xff"
      "bCdEfGh\x80";
  for (std::size_t size = 0; size <= 9; ++size) {
    std::string padded = text.substr(0, size);
    padded.resize(9);
    EXPECT_EQ(load_few(std::string_view(text).substr(0, size)), load_eight(padded.data())) << size;
  }
}

}  // namespace
}  // namespace troupe::base
