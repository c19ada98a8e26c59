// The errors of databases.
#include <gtest/gtest.h>

#include "troupe/database/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

using database::effect;
using database::failure;

std::shared_ptr<const error> failed(failure kind, effect done = effect::none) {
  return made<database::error>(kind, 0, "x", database::rule::other, done);
}

TEST(verdicts, of_databases) {
  constexpr auto now = verdict::again::now;  // not troupe::now()
  expect_verdicts({
      {"database::error", "unreachable", failed(failure::unreachable), {upstream, none, later}},
      {"database::error", "busy", failed(failure::busy), {upstream, none, later}},
      {"database::error", "full", failed(failure::full), {upstream, none, later}},
      {"database::error", "read_only", failed(failure::read_only), {caller, none, never}},
      {"database::error", "corrupted", failed(failure::corrupted), {upstream, none, never}},
      {"database::error", "constraint", failed(failure::constraint), {caller, none, never}},
      {"database::error", "statement", failed(failure::statement), {caller, none, never}},
      {"database::error", "conversion", failed(failure::conversion), {caller, none, never}},
      {"database::error", "too_many_rows", failed(failure::too_many_rows), {caller, none, never}},
      {"database::error", "broken", failed(failure::broken), {upstream, none, never}},
      {"database::error", "lost", failed(failure::lost), {upstream, none, later}},
      {"database::error", "conflict", failed(failure::conflict), {caller, none, now}},
      {"database::error", "denied", failed(failure::denied), {caller, none, never}},
      {"database::error",
       "transaction_ended",
       failed(failure::transaction_ended),
       {caller, none, now}},
      {"database::error", "too_slow", failed(failure::too_slow), {caller, none, never}},
      {"database::error", "bad_target", failed(failure::bad_target), {caller, none, never}},
      {"database::error",
       "lost, effect unknown",
       failed(failure::lost, effect::unknown),
       {upstream, unknown, later}},
      {"database::error",
       "conversion, effect unknown",
       failed(failure::conversion, effect::unknown),
       {caller, unknown, never}},
  });
}

}  // namespace
}  // namespace troupe::test
