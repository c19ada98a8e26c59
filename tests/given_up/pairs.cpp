// A wait that loses has moved nothing (docs/protocols/given_up_waits.md).
#include "given_up/sources.hpp"

namespace troupe::test {
namespace {

class given_up_waits : public conformance {};

constexpr int values = 1000;

TEST_P(given_up_waits, each_pair_of_sources_gives_all_its_values) {
  const auto all = sync_sources();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      const auto one = all[i].make(), other = all[j].make();
      received got[2];
      {
        runtime rt(options());
        rt.spawn(drain_pair(*one, *other, fewer(values, 100), got));
        rt.run();
      }
      for (const received& each : got) {
        EXPECT_EQ(each.next, fewer(values, 100)) << all[i].name << ' ' << all[j].name;
        EXPECT_TRUE(each.in_order) << all[i].name << ' ' << all[j].name;
      }
    }
  }
}

TEST_P(given_up_waits, a_source_gives_all_its_values_under_limits) {
  for (const named_source& each : sync_sources()) {
    const auto from = each.make();
    received got;
    {
      runtime rt(options());
      rt.spawn(drain_limited(*from, fewer(values, 100), got));
      rt.run();
    }
    EXPECT_EQ(got.next, fewer(values, 100)) << each.name;
    EXPECT_TRUE(got.in_order) << each.name;
  }
}

TROUPE_TEST_EACH(given_up_waits, each_policy);

}  // namespace
}  // namespace troupe::test
