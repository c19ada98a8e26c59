// As other_pairs.cpp, with 100 times as many values.
#include "given_up/stream_sources.hpp"

namespace troupe::test {
namespace {

class given_up_others_deep : public conformance {};

TEST_P(given_up_others_deep, each_beside_a_ready_source_gives_all_its_values) {
  check_beside_ready(options(), fewer(100'000, 100), false);
}
TEST_P(given_up_others_deep, each_under_limits_gives_all_its_values) {
  check_under_limits(options(), fewer(100'000, 100));
}

TROUPE_TEST_EACH(given_up_others_deep, each_policy);

}  // namespace
}  // namespace troupe::test
