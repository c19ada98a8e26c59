// What the fuzzing of our framing has found, and the vectors: each time we and Boost.Beast read the same, or differ for a
// reason that is written down (framing.cpp).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/framing.hpp"
#include "http/vectors.hpp"

namespace troupe::test {
namespace {

TEST(fuzz_framing, of_the_vectors_is_that_of_beast) {
  for (const http::vector& one : http::vectors) EXPECT_EQ(difference(one.bytes), "") << one.name;
  if (!beast_is_here()) GTEST_SKIP() << "libboost-dev is not here: our framing was compared with itself alone";
}

TEST(fuzz_framing, of_what_was_found_is_that_of_beast) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source) / "tests/fuzz/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(difference(bytes), "") << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
  if (!beast_is_here()) GTEST_SKIP() << "libboost-dev is not here: our framing was compared with itself alone";
}

}  // namespace
}  // namespace troupe::test
