// As foreign.cpp, with 100 times as many values.
#include "given_up/foreign_sources.hpp"

namespace troupe::test {
namespace {

class given_up_foreign_deep : public conformance {};

TEST_P(given_up_foreign_deep, each_own_awaitable_gives_all_its_values) {
  check_own_sources(options(), fewer(100'000, 100));
}

TROUPE_TEST_EACH(given_up_foreign_deep, each_policy);

}  // namespace
}  // namespace troupe::test
