#include "http/websocket/handshake/deflate.hpp"

#include <gtest/gtest.h>

#include <random>

namespace troupe::http {
namespace {

using namespace std::string_literals;

constexpr std::size_t plenty = 1 << 20;

std::string inflated(message_inflater& by, const std::string& message, std::size_t most = plenty) {
  std::string text;
  inflate_result how = by.add(message, text, most);
  if (how == inflate_result::whole) how = by.finish(text, most);
  if (how == inflate_result::malformed) return "malformed";
  return how == inflate_result::too_large ? "too large" : text;
}

// The examples of RFC 7692, 7.2.3.
TEST(http_deflate, inflates_the_examples_of_the_standard) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  message_inflater inflater(15, true);
  EXPECT_EQ(inflated(inflater, hello), "Hello");
  EXPECT_EQ(inflated(inflater, "\xf2\x00\x11\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\x00"s), "");
  EXPECT_EQ(inflated(inflater, hello), "Hello");
}

TEST(http_deflate, compresses_as_the_examples_of_the_standard) {
  message_deflater deflater(15, true, {});
  EXPECT_EQ(deflater.compress("Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"s);
  EXPECT_EQ(deflater.compress("Hello"), "\xf2\x00\x11\x00\x00"s);
}

// The window stays after a block that says it is the last one.
TEST(http_deflate, a_message_may_refer_to_what_came_before_a_last_block) {
  message_inflater inflater(15, true);
  EXPECT_EQ(inflated(inflater, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\xf2\x00\x11\x00\x00"s), "Hello");
}

TEST(http_deflate, a_message_that_ends_in_the_middle_of_a_block_is_malformed) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  for (std::size_t bytes = 1; bytes < hello.size(); ++bytes) {
    message_inflater inflater(15, true);
    EXPECT_EQ(inflated(inflater, hello.substr(0, bytes)), "malformed") << bytes;
  }
  message_inflater inflater(15, true);
  EXPECT_EQ(inflated(inflater, ""), "");
  // This peer does not cut off the end of its flush.
  EXPECT_EQ(inflated(inflater, hello + "\x00\x00\xff\xff"s), "Hello");
  EXPECT_EQ(inflated(inflater, "\xf2\x00\x11\x00\x00"s), "Hello");
}

// This includes a message whose inflated bytes fill the buffer exactly, a whole number of times.
TEST(http_deflate, a_flush_that_is_not_cut_off_ends_a_message_of_any_length) {
  for (const std::size_t bytes : {16'383u, 16'384u, 16'385u, 32'768u, 65'536u}) {
    message_deflater deflater(15, true, {});
    message_inflater inflater(15, true);
    const std::string text(bytes, 'x');
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(inflated(inflater, deflater.compress(text) + "\x00\x00\xff\xff"s) == text)
          << bytes;
  }
}

TEST(http_deflate, without_context_each_message_stands_alone_and_nothing_is_held) {
  message_deflater deflater(15, false, {});
  message_inflater inflater(15, false);
  const std::string text(1000, 'x');
  EXPECT_FALSE(deflater.holds_memory() || inflater.holds_memory());
  const std::string first = deflater.compress(text);
  EXPECT_EQ(deflater.compress(text), first);
  EXPECT_FALSE(deflater.holds_memory());
  std::string inflated_text;
  EXPECT_EQ(inflater.add(first, inflated_text, plenty), inflate_result::whole);
  EXPECT_TRUE(inflater.holds_memory());
  EXPECT_EQ(inflater.finish(inflated_text, plenty), inflate_result::whole);
  EXPECT_FALSE(inflater.holds_memory());
  EXPECT_EQ(inflated_text, text);
  EXPECT_EQ(deflater.compress("xyz"), "");  // the compressed text would not be shorter
  EXPECT_EQ(inflated(inflater, "\xf2\x00\x11\x00\x00"s), "malformed");
}

// However few bytes come in, at most twice the limit is allocated, because strings grow by
// doubling.
TEST(http_deflate, what_is_inflated_is_bounded_while_it_is_inflated) {
  constexpr std::size_t most = 100'000;
  message_deflater deflater(15, true, {});
  const std::string bomb = deflater.compress(std::string(50'000'000, '\0'));
  EXPECT_LT(bomb.size(), most);
  message_inflater inflater(15, true);
  std::string inflated_text;
  EXPECT_EQ(inflater.add(bomb, inflated_text, most), inflate_result::too_large);
  EXPECT_LE(inflated_text.size(), most);
  EXPECT_LE(inflated_text.capacity(), 2 * most);
  message_deflater exact(15, true, {});
  const std::string whole = exact.compress(std::string(most, 'x'));
  message_inflater again(15, true);
  EXPECT_EQ(inflated(again, whole, most), std::string(most, 'x'));
  message_inflater less(15, true);
  EXPECT_EQ(inflated(less, whole, most - 1), "too large");
}

// Empty blocks, each of which says that it is the last: none of them costs a copy of the whole
// window.
TEST(http_deflate, many_last_blocks_are_read) {
  message_inflater inflater(15, true);
  message_deflater deflater(15, true, {});
  const std::string random_text = [] {
    std::minstd_rand random(1);
    std::string text(40'000, '\0');
    for (char& character : text) character = static_cast<char>(random() >> 7);
    return text;
  }();
  EXPECT_EQ(inflated(inflater, deflater.compress(random_text)), random_text);
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "\x03\x00"s;
  EXPECT_EQ(inflated(inflater, many + "\x00"s), "");
}

TEST(http_deflate, all_windows_levels_and_lengths) {
  std::minstd_rand random(7);
  for (int bits = 9; bits <= 15; ++bits) {
    for (const bool keeps : {true, false}) {
      websocket_deflate how;
      how.level = 1 + bits % 9;
      how.memory_level = 1 + (bits + 3) % 9;
      message_deflater deflater(bits, keeps, how);
      message_inflater inflater(bits, keeps);
      for (const std::size_t bytes : {1u, 63u, 64u, 4'096u, 16'384u, 100'000u}) {
        std::string text(bytes, '\0');
        for (std::size_t i = 0; i < bytes; ++i)
          text[i] = i < 20 ? 'a' : random() % 3 == 0 ? static_cast<char>(random()) : text[i - 17];
        const std::string compressed = deflater.compress(text);
        if (compressed.empty() && !keeps) continue;  // the compressed text would not be shorter
        EXPECT_TRUE(inflated(inflater, compressed) == text) << bits << ' ' << bytes;
      }
    }
  }
}

// A later message does not refer to one that was compressed and never sent.
TEST(http_deflate, a_message_that_was_not_sent_is_forgotten) {
  message_deflater deflater(15, true, {});
  message_inflater inflater(15, true);
  const std::string text = "some text that is long enough to be referred to";
  EXPECT_EQ(inflated(inflater, deflater.compress("before")), "before");
  deflater.compress(text);
  deflater.forget();
  EXPECT_EQ(inflated(inflater, deflater.compress(text)), text);
}

}  // namespace
}  // namespace troupe::http
