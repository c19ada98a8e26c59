// Decoders give back what encoders have made, in pieces of any length, and refuse everything else.
#include "http/coding/decoder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "http/coding/decoded_body.hpp"

namespace troupe::http {
namespace {

std::vector<coding> all_codings() {
  std::vector<coding> all;
  for (const coding candidate : {coding::gzip, coding::brotli, coding::zstd})
    if (has_coding(candidate) && can_decode(candidate)) all.push_back(candidate);
  return all;
}

std::string encoded(std::string_view text, coding by) {
  std::string coded;
  make_encoder(by)->add(text, coded, encoder::until::end);
  return coded;
}

std::string text_of(std::size_t bytes) {
  std::minstd_rand random(7);
  std::string text;
  while (text.size() < bytes) text += std::string(1 + random() % 20, "abcdefgh"[random() % 8]);
  text.resize(bytes);
  return text;
}

// "malformed", "unfinished", or the text.
std::string decoded(std::string_view from, coding by, std::size_t piece, std::size_t room) {
  const auto with = make_decoder(by);
  std::string text, to(room, '\0');
  while (!from.empty()) {
    std::string_view now = from.substr(0, piece);
    from.remove_prefix(now.size());
    for (;;) {
      const std::size_t bytes = with->add(now, to);
      text.append(to, 0, bytes);
      if (with->is_malformed()) return "malformed";
      if (bytes < room) break;
    }
    EXPECT_EQ(now, "");
  }
  return with->may_end() ? text : "unfinished";
}

TEST(http_decoder, gives_back_what_was_encoded) {
  for (const coding tested : all_codings()) {
    for (const std::size_t bytes : {0u, 1u, 5'000u, 300'000u}) {
      const std::string text = text_of(bytes), coded = encoded(text, tested);
      EXPECT_TRUE(decoded(coded, tested, coded.size(), 16'384) == text) << name_of(tested) << bytes;
      EXPECT_TRUE(decoded(coded, tested, 1, 1) == text) << name_of(tested) << bytes;
      EXPECT_TRUE(decoded(coded, tested, 7, text.size() + 1) == text) << name_of(tested) << bytes;
      EXPECT_TRUE(decoded(coded, tested, coded.size(), std::max<std::size_t>(text.size(), 1)) ==
                  text)
          << name_of(tested) << bytes;
    }
  }
}

TEST(http_decoder, a_body_that_ends_too_early_is_unfinished) {
  for (const coding tested : all_codings()) {
    const std::string coded = encoded(text_of(500), tested);
    for (std::size_t bytes = 1; bytes < coded.size(); ++bytes)
      EXPECT_EQ(decoded(coded.substr(0, bytes), tested, 9, 10'000), "unfinished")
          << name_of(tested) << ' ' << bytes;
    EXPECT_EQ(decoded("", tested, 1, 1), "") << "no body is an empty one";
  }
}

TEST(http_decoder, other_bytes_are_malformed) {
  for (const coding tested : all_codings()) {
    const std::string coded = encoded(text_of(500), tested);
    EXPECT_EQ(decoded("this is a text, and no more", tested, 100, 10'000), "malformed")
        << name_of(tested);
    EXPECT_EQ(decoded(coded + "more", tested, 1, 10'000), "malformed") << name_of(tested);
    EXPECT_EQ(decoded(coded + "more", tested, 10'000, 10'000), "malformed") << name_of(tested);
    EXPECT_EQ(decoded(coded + "more", tested, 10'000, 500), "malformed") << name_of(tested);
  }
  std::string changed = encoded(text_of(500), coding::gzip);
  changed[changed.size() - 5] ^= 1;  // of the checksum
  EXPECT_EQ(decoded(changed, coding::gzip, 10, 10'000), "malformed");
}

TEST(http_decoder, several_members_are_one_body) {
  for (const coding tested : {coding::gzip, coding::zstd}) {
    if (!can_decode(tested)) continue;
    const std::string first = encoded("one ", tested), second = encoded("two", tested);
    EXPECT_EQ(decoded(first + second, tested, 1, 1), "one two") << name_of(tested);
    EXPECT_EQ(decoded(first + second, tested, 1'000, 1'000), "one two") << name_of(tested);
    EXPECT_EQ(decoded(first + second.substr(0, 3), tested, 1'000, 1'000), "unfinished");
  }
}

// A window of 128 MiB would be the sender's choice, and our memory.
TEST(http_decoder, a_window_that_is_too_large_is_malformed) {
  if (!can_decode(coding::zstd)) GTEST_SKIP() << "needs brotli and zstd";
  const std::string frame = std::string("\x28\xb5\x2f\xfd\x00", 5) + "\x88" + "\x01\x00\x00";
  EXPECT_EQ(decoded(frame, coding::zstd, 100, 100), "malformed");
}

TEST(http_decoder, memory_is_what_the_window_takes) {
  const std::string text = text_of(600'000);
  for (const coding tested : all_codings()) {
    const auto with = make_decoder(tested);
    const std::string coded = encoded(text, tested);
    std::string_view from = coded;
    std::string to(16'384, '\0');
    while (with->add(from, to) == to.size())
      EXPECT_LT(with->memory(), 2'000'000u) << name_of(tested);
    EXPECT_GT(with->memory(), 30'000u) << name_of(tested);
  }
}

TEST(http_decoder, names) {
  EXPECT_EQ(coding_named("gzip"), coding::gzip);
  EXPECT_EQ(coding_named("GZip"), coding::gzip);
  EXPECT_EQ(coding_named("x-gzip"), coding::gzip);
  EXPECT_EQ(coding_named("deflate"), std::nullopt);
  EXPECT_EQ(coding_named("gzip, gzip"), std::nullopt);
  EXPECT_EQ(coding_named(""), std::nullopt);
  EXPECT_TRUE(decodable_codings().starts_with("gzip"));
}

TEST(http_decoded_body, ends_at_its_limit) {
  for (const coding tested : all_codings()) {
    const std::string coded = encoded(std::string(100'000, 'a'), tested);
    for (const std::uint64_t limit : {99'999u, 100'000u}) {
      decoded_body body(tested, limit);
      body.came(coded);
      std::size_t bytes = 0;
      for (;;) {
        const std::size_t more = body.next().size();
        if (more == 0) break;
        bytes += more;
      }
      body.ended();
      EXPECT_EQ(body.wrong(), limit == 100'000 ? fault::none : fault::body_too_large)
          << name_of(tested);
      EXPECT_LE(bytes, limit) << name_of(tested);
    }
  }
}

TEST(http_decoded_body, says_what_is_wrong) {
  decoded_body none(coding::gzip, 10);
  none.ended();
  EXPECT_EQ(none.wrong(), fault::none);
  decoded_body cut(coding::gzip, 10);
  cut.came(std::string_view("\x1f\x8b", 2));
  EXPECT_EQ(cut.next(), "");
  EXPECT_EQ(cut.wrong(), fault::none);
  cut.ended();
  EXPECT_EQ(cut.wrong(), fault::bad_content);
  decoded_body other(coding::gzip, 10);
  other.came("hello");
  EXPECT_EQ(other.next(), "");
  EXPECT_EQ(other.wrong(), fault::bad_content);
}

}  // namespace
}  // namespace troupe::http
