#include "http/websocket/handshake/deflate.hpp"

#include <gtest/gtest.h>

#include <random>

namespace troupe::http {
namespace {

using namespace std::string_literals;

constexpr std::size_t plenty = 1 << 20;

std::string inflated(message_inflater& by, const std::string& message, std::size_t most = plenty) {
  std::string made;
  inflate_result how = by.add(message, made, most);
  if (how == inflate_result::whole) how = by.finish(made, most);
  if (how == inflate_result::malformed) return "malformed";
  return how == inflate_result::too_large ? "too large" : made;
}

// The examples of RFC 7692, 7.2.3.
TEST(http_deflate, inflates_the_examples_of_the_standard) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  message_inflater one(15, true);
  EXPECT_EQ(inflated(one, hello), "Hello");
  EXPECT_EQ(inflated(one, "\xf2\x00\x11\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(one, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s), "Hello");
  EXPECT_EQ(inflated(one, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(one, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s), "Hello");
  EXPECT_EQ(inflated(one, "\x00"s), "");
  EXPECT_EQ(inflated(one, hello), "Hello");
}

TEST(http_deflate, compresses_as_the_examples_of_the_standard) {
  message_deflater one(15, true, {});
  EXPECT_EQ(one.compress("Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"s);
  EXPECT_EQ(one.compress("Hello"), "\xf2\x00\x11\x00\x00"s);
}

// The window stays after a block that says it is the last one.
TEST(http_deflate, a_message_may_refer_to_what_came_before_a_last_block) {
  message_inflater one(15, true);
  EXPECT_EQ(inflated(one, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s), "Hello");
  EXPECT_EQ(inflated(one, "\xf2\x00\x11\x00\x00"s), "Hello");
}

TEST(http_deflate, a_message_that_ends_in_the_middle_of_a_block_is_malformed) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  for (std::size_t bytes = 1; bytes < hello.size(); ++bytes) {
    message_inflater one(15, true);
    EXPECT_EQ(inflated(one, hello.substr(0, bytes)), "malformed") << bytes;
  }
  message_inflater one(15, true);
  EXPECT_EQ(inflated(one, ""), "");
  // This peer does not cut off the end of its flush.
  EXPECT_EQ(inflated(one, hello + "\x00\x00\xff\xff"s), "Hello");
  EXPECT_EQ(inflated(one, "\xf2\x00\x11\x00\x00"s), "Hello");
}

// This includes a message whose inflated bytes fill the buffer exactly, a whole number of times.
TEST(http_deflate, a_flush_that_is_not_cut_off_ends_a_message_of_any_length) {
  for (const std::size_t bytes : {16'383u, 16'384u, 16'385u, 32'768u, 65'536u}) {
    message_deflater out(15, true, {});
    message_inflater in(15, true);
    const std::string text(bytes, 'x');
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(inflated(in, out.compress(text) + "\x00\x00\xff\xff"s) == text) << bytes;
  }
}

TEST(http_deflate, without_context_each_message_stands_alone_and_nothing_is_held) {
  message_deflater out(15, false, {});
  message_inflater in(15, false);
  const std::string text(1000, 'x');
  EXPECT_FALSE(out.holds_memory() || in.holds_memory());
  const std::string first = out.compress(text);
  EXPECT_EQ(out.compress(text), first);
  EXPECT_FALSE(out.holds_memory());
  std::string made;
  EXPECT_EQ(in.add(first, made, plenty), inflate_result::whole);
  EXPECT_TRUE(in.holds_memory());
  EXPECT_EQ(in.finish(made, plenty), inflate_result::whole);
  EXPECT_FALSE(in.holds_memory());
  EXPECT_EQ(made, text);
  EXPECT_EQ(out.compress("xyz"), "");  // the compressed text would not be shorter
  EXPECT_EQ(inflated(in, "\xf2\x00\x11\x00\x00"s), "malformed");
}

// However few bytes come in, at most twice the limit is allocated, because strings grow by
// doubling.
TEST(http_deflate, what_is_inflated_is_bounded_while_it_is_inflated) {
  constexpr std::size_t most = 100'000;
  message_deflater out(15, true, {});
  const std::string bomb = out.compress(std::string(50'000'000, '\0'));
  EXPECT_LT(bomb.size(), most);
  message_inflater in(15, true);
  std::string made;
  EXPECT_EQ(in.add(bomb, made, most), inflate_result::too_large);
  EXPECT_LE(made.size(), most);
  EXPECT_LE(made.capacity(), 2 * most);
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
  message_inflater in(15, true);
  message_deflater out(15, true, {});
  const std::string random_text = [] {
    std::minstd_rand random(1);
    std::string text(40'000, '\0');
    for (char& one : text) one = static_cast<char>(random() >> 7);
    return text;
  }();
  EXPECT_EQ(inflated(in, out.compress(random_text)), random_text);
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "\x03\x00"s;
  EXPECT_EQ(inflated(in, many + "\x00"s), "");
}

TEST(http_deflate, all_windows_levels_and_lengths) {
  std::minstd_rand random(7);
  for (int bits = 9; bits <= 15; ++bits) {
    for (const bool keeps : {true, false}) {
      websocket_deflate how;
      how.level = 1 + bits % 9;
      how.memory_level = 1 + (bits + 3) % 9;
      message_deflater out(bits, keeps, how);
      message_inflater in(bits, keeps);
      for (const std::size_t bytes : {1u, 63u, 64u, 4'096u, 16'384u, 100'000u}) {
        std::string text(bytes, '\0');
        for (std::size_t i = 0; i < bytes; ++i)
          text[i] = i < 20 ? 'a' : random() % 3 == 0 ? static_cast<char>(random()) : text[i - 17];
        const std::string made = out.compress(text);
        if (made.empty() && !keeps) continue;  // the compressed text would not be shorter
        EXPECT_TRUE(inflated(in, made) == text) << bits << ' ' << bytes;
      }
    }
  }
}

// A later message does not refer to one that was compressed and never sent.
TEST(http_deflate, a_message_that_was_not_sent_is_forgotten) {
  message_deflater out(15, true, {});
  message_inflater in(15, true);
  const std::string text = "some text that is long enough to be referred to";
  EXPECT_EQ(inflated(in, out.compress("before")), "before");
  out.compress(text);
  out.forget();
  EXPECT_EQ(inflated(in, out.compress(text)), text);
}

}  // namespace
}  // namespace troupe::http
