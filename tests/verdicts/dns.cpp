// The errors of names.
#include <gtest/gtest.h>

#include "troupe/dns/resolver.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_names) {
  expect_verdicts({
      {"resolve_error",
       "host_not_found",
       made<resolve_error>(resolve_failure::host_not_found, "a", "x"),
       {upstream, none, never}},
      {"resolve_error",
       "no_data",
       made<resolve_error>(resolve_failure::no_data, "a", "x"),
       {upstream, none, never}},
      {"resolve_error",
       "try_again",
       made<resolve_error>(resolve_failure::try_again, "a", "x"),
       {upstream, none, later}},
      {"resolve_error",
       "bad_name",
       made<resolve_error>(resolve_failure::bad_name, "a", "x"),
       {caller, none, never}},
      {"resolve_error",
       "in_simulation",
       made<resolve_error>(resolve_failure::in_simulation, "a", "x"),
       {caller, none, never}},
  });
}

}  // namespace
}  // namespace troupe::test
