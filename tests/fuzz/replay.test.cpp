// The inputs that the fuzzing of our framing has found, and the vectors: our parser and Boost.Beast
// read the same, or differ for a reason that is written down (framing.cpp). For the inputs for our
// inflation, zlib alone has the same result.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/behind_proxy/proxies.hpp"
#include "fuzz/coding/decodings.hpp"
#include "fuzz/frames.hpp"
#include "fuzz/framing.hpp"
#include "fuzz/inflation.hpp"
#include "fuzz/values.hpp"
#include "http/coding/decoder.hpp"
#include "http/h1/vectors.hpp"
#include "http/websocket/handshake/deflate.hpp"

namespace troupe::test {
namespace {

// Returns the number of files.
template <class Do>
int for_each_file(const char* folder, Do what) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  if (source == nullptr) return 0;
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source) / folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    what(std::string((std::istreambuf_iterator<char>(in)), {}), entry.path());
    ++count;
  }
  return count;
}

TEST(fuzz_framing, of_the_vectors_is_that_of_beast) {
  for (const http::vector& one : http::vectors) EXPECT_EQ(difference(one.bytes), "") << one.name;
  if (!beast_is_here())
    GTEST_SKIP() << "needs Boost.Beast: our framing was compared with itself alone";
}

TEST(fuzz_framing, of_what_was_found_is_that_of_beast) {
  const int count = for_each_file("tests/fuzz/corpus",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
  if (!beast_is_here())
    GTEST_SKIP() << "needs Boost.Beast: our framing was compared with itself alone";
}

TEST(fuzz_inflation, of_what_was_found_is_that_of_zlib) {
  const int count = for_each_file("tests/fuzz/messages",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(inflation_difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
}

TEST(fuzz_frames, of_what_was_found_are_the_same_in_pieces) {
  const int count = for_each_file("tests/fuzz/frames",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(frames_difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
}

TEST(fuzz_proxies, say_the_same_in_steps_and_at_once) {
  const int count = for_each_file("tests/fuzz/behind_proxy/corpus",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(proxies_difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
}

TEST(fuzz_decodings, of_what_was_found_are_the_same_in_pieces) {
  const int count = for_each_file("tests/fuzz/coding/corpus",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(decodings_difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
}

// Bodies of each coding, with some bytes changed.
TEST(fuzz_decodings, of_bodies_with_some_bytes_changed_are_the_same_in_pieces) {
  std::minstd_rand random(26);
  for (int i = 0; i < 3'000; ++i) {
    const auto by = static_cast<http::coding>(i % 3);
    if (!http::has_coding(by) || !http::can_decode(by)) continue;
    std::string text(random() % 3000, 'a');
    for (char& one : text)
      one = static_cast<char>('a' + random() % (1 + static_cast<unsigned>(i) % 20));
    std::string input{static_cast<char>(i % 3 + 3 * static_cast<int>(random() % 12)),
                      static_cast<char>(random())};
    http::make_encoder(by)->add(text, input, http::encoder::until::end);
    for (std::size_t changes = random() % 3; changes > 0; --changes)
      input[2 + random() % (input.size() - 2)] = static_cast<char>(random());
    EXPECT_EQ(decodings_difference(input), "") << i;
  }
}

TEST(fuzz_values, of_what_was_found_are_the_same_in_pieces) {
  const int count = for_each_file("tests/fuzz/values",
                                  [](const std::string& bytes, const std::filesystem::path& path) {
                                    EXPECT_EQ(values_difference(bytes), "") << path;
                                  });
  EXPECT_GT(count, 0);
}

// Bodies of some parts, with some bytes changed.
TEST(fuzz_values, of_bodies_with_some_bytes_changed_are_the_same_in_pieces) {
  std::minstd_rand random(26);
  for (int i = 0; i < 20'000; ++i) {
    std::string input(1, static_cast<char>(random()));
    for (std::size_t parts = random() % 4; parts > 0; --parts) {
      input += "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=x\r\n\r\n";
      input += std::string(random() % 20, "\r\n-b"[random() % 4]) + "\r\n";
    }
    input += "--b--\r\n";
    for (std::size_t changes = random() % 4; changes > 0; --changes)
      input[random() % input.size()] = "\r\n-b;=\" :%&"[random() % 11];
    EXPECT_EQ(values_difference(input), "") << i;
  }
}

// Two messages that share a context, with some bytes changed, in pieces of all lengths.
TEST(fuzz_inflation, of_messages_with_some_bytes_changed_is_that_of_zlib) {
  std::minstd_rand random(22);
  for (int i = 0; i < 20'000; ++i) {
    http::message_deflater by(9 + i % 7, true, {});
    std::string first(1 + random() % 200, 'a'), second(random() % 2000, 'b');
    for (char& one : first)
      one = static_cast<char>('a' + random() % (1 + static_cast<unsigned>(i) % 20));
    for (std::size_t at = 0; at < second.size(); ++at)
      second[at] = first[(at + random() % 2) % first.size()];
    first = by.compress(first);
    second = by.compress(second);
    std::string input{static_cast<char>(random()), static_cast<char>(random()),
                      static_cast<char>(first.size())};
    input += first + second;
    for (std::size_t changes = random() % 3; changes > 0; --changes)
      input[3 + random() % (input.size() - 3)] = static_cast<char>(random());
    EXPECT_EQ(inflation_difference(input), "") << i;
  }
}

}  // namespace
}  // namespace troupe::test
