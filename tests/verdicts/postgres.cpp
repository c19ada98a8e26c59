// The error of PostgreSQL answers by its kind, as that of databases.
#include <gtest/gtest.h>

#include "troupe/postgres/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_postgres) {
  constexpr auto now = verdict::again::now;  // not troupe::now()
  expect_verdicts({
      {"postgres::error",
       "denied, 28P01",
       made<postgres::error>(database::failure::denied, "x",
                             postgres::error::words{"28P01", "", ""}),
       {caller, none, never}},
      {"postgres::error",
       "too_slow, 57014",
       made<postgres::error>(database::failure::too_slow, "x",
                             postgres::error::words{"57014", "", ""}),
       {caller, none, never}},
      {"postgres::error",
       "busy, 55P03",
       made<postgres::error>(database::failure::busy, "x", postgres::error::words{"55P03", "", ""}),
       {upstream, none, later}},
      {"postgres::error",
       "conflict, 40001",
       made<postgres::error>(database::failure::conflict, "x",
                             postgres::error::words{"40001", "", ""}),
       {caller, none, now}},
  });
}

}  // namespace
}  // namespace troupe::test
