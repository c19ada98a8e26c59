#include "runtime/copies.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::copies {
namespace {

// Stands for another copy that has made the first runtime, and gives the name back.
struct another_first {
  explicit another_first(const build& other) : before(first.exchange(other.word())) {}
  ~another_first() { first.store(before); }
  const std::uint64_t before;
};

TEST(copies, a_word_holds_a_build) {
  for (const build& written :
       {build{0, 9, 0}, build{0, 0, 0}, build{65535, 65534, 65533, true, false},
        build{1, 2, 3, false, true}}) {
    const build read = build::of(written.word());
    EXPECT_NE(written.word(), 0u);
    EXPECT_EQ(read.text(), written.text());
    EXPECT_EQ(read.word(), written.word());
  }
  EXPECT_EQ((build{1, 2, 3, true, false}.text()), "1.2.3, checked");
}

TEST(copies, a_runtime_of_the_same_build_is_made) {
  const another_first same(build::here());
  runtime rt;
  rt.run();
}

TEST(copies, a_runtime_beside_a_build_that_differs_is_refused) {
  const build own = build::here();
  std::vector<build> others(4, own);
  ++others[0].minor;
  ++others[1].patch;
  others[2].is_checked = !own.is_checked;
  others[3].is_sanitized = !own.is_sanitized;
  for (const build& other : others) {
    const another_first differs(other);
    try {
      runtime rt;
      ADD_FAILURE() << other.text() << " was not refused";
    } catch (const usage_error& refused) {
      const std::string text = refused.what();
      EXPECT_NE(text.find(other.text() + "; and " + own.text()), std::string::npos) << text;
      EXPECT_NE(text.find("--exclude-libs"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace troupe::copies
