// What a hostile peer may send to a node: each ask ends, and the node goes on working.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/cluster/cluster.hpp"

namespace troupe::test {
namespace {

std::vector<std::string> seeds() {
  const char* const source = std::getenv("TROUPE_SOURCE_DIR");
  std::vector<std::string> all;
  if (source == nullptr) return all;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source) /
                                                               "tests/fuzz/cluster/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    all.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  return all;
}

TEST(fuzz_cluster, a_node_survives_what_was_found) {
  const std::vector<std::string> all = seeds();
  EXPECT_FALSE(all.empty());
  for (const std::string& input : all) EXPECT_EQ(cluster_failure(input), "") << input;
}

// The same with some bytes changed, put in, and left out.
TEST(fuzz_cluster, a_node_survives_changed_messages) {
  std::vector<std::string> all = seeds();
  ASSERT_FALSE(all.empty());
  std::sort(all.begin(), all.end());
  std::minstd_rand random(28);
  for (int i = 0; i < 1'000; ++i) {
    std::string input = all[random() % all.size()] + all[random() % all.size()];
    for (std::size_t changes = random() % 8; changes > 0 && !input.empty(); --changes) {
      const std::size_t at = random() % input.size();
      const char byte =
          random() % 2 == 0 ? "\0\1\377\177"[random() % 4] : static_cast<char>(random());
      switch (random() % 4) {
        case 0:
          input.insert(at, 1, byte);
          break;
        case 1:
          input.erase(at, 1 + random() % 4);
          break;
        default:
          input[at] = byte;
      }
    }
    ASSERT_EQ(cluster_failure(input), "") << "input " << i << ": " << testing::PrintToString(input);
  }
}

}  // namespace
}  // namespace troupe::test
