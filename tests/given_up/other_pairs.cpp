// What locks, the kit and streams give is not lost with a wait that loses.
#include "given_up/stream_sources.hpp"

namespace troupe::test {
namespace {

class given_up_others : public conformance {};

TEST_P(given_up_others, each_beside_a_ready_source_gives_all_its_values) {
  check_beside_ready(options(), fewer(1000, 10));
}
TEST_P(given_up_others, each_under_limits_gives_all_its_values) {
  check_under_limits(options(), fewer(1000, 10));
}

TROUPE_TEST_EACH(given_up_others, each_policy);

}  // namespace
}  // namespace troupe::test
