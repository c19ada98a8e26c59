// As pairs.cpp, with 100 times as many values.
#include "given_up/sources.hpp"

namespace troupe::test {
namespace {

class given_up_waits_deep : public conformance {};

TEST_P(given_up_waits_deep, each_pair_of_sources_gives_all_its_values) {
  const int values = fewer(100'000, 100);
  const auto all = sync_sources();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      const auto one = all[i].make(), other = all[j].make();
      received got[2];
      {
        runtime rt(options());
        rt.spawn(drain_pair(*one, *other, values, got));
        rt.run();
      }
      for (const received& each : got) {
        EXPECT_EQ(each.next, values) << all[i].name << ' ' << all[j].name;
        EXPECT_TRUE(each.in_order) << all[i].name << ' ' << all[j].name;
      }
    }
  }
}

TROUPE_TEST_EACH(given_up_waits_deep, each_policy);

}  // namespace
}  // namespace troupe::test
