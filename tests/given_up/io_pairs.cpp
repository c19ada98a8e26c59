// What the system gives is not lost with a wait that loses, under each backend.
#include "given_up/io_sources.hpp"

namespace troupe::test {
namespace {

class given_up_input : public io_conformance {};

constexpr int values = 1000;

int expected(const char* name) {
  const int count = fewer(values, 10);
  return std::string_view(name) == "accept" ? std::min(count, accept_source::connections_max)
                                            : count;
}

TEST_P(given_up_input, each_pair_gives_all_its_values) {
  auto all = io_sources();
  all.push_back(sync_sources().front());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      received got[2];
      {
        const auto one = all[i].make(), other = all[j].make();
        runtime rt(options());
        rt.spawn(drain_pair(*one, *other, fewer(values, 10), got));
        rt.run();
      }
      for (const auto& [name, each] : {std::pair(all[i].name, got[0]), {all[j].name, got[1]}}) {
        EXPECT_EQ(each.next, expected(name)) << all[i].name << ' ' << all[j].name;
        EXPECT_TRUE(each.in_order) << all[i].name << ' ' << all[j].name;
      }
    }
  }
}

TEST_P(given_up_input, a_source_gives_all_its_values_under_limits) {
  for (const named_source& each : io_sources()) {
    received got;
    {
      const auto from = each.make();
      runtime rt(options());
      rt.spawn(drain_limited(*from, fewer(values, 10), got));
      rt.run();
    }
    EXPECT_EQ(got.next, expected(each.name)) << each.name;
    EXPECT_TRUE(got.in_order) << each.name;
  }
}

TROUPE_IO_TEST_EACH(given_up_input);

}  // namespace
}  // namespace troupe::test
