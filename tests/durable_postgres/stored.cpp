// A store that an earlier version of the library has written in PostgreSQL is opened, and goes on.
#include <gtest/gtest.h>

#include <string>

#include "durable/stored/check.hpp"
#include "durable_postgres/place.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

TEST(durable_postgres_stored, a_store_from_before_identities_goes_on) {
  if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
  const std::string script =
      scratch::text_of(source_folder() / "tests" / "durable" / "stored" / "before_identity.sql");
  ASSERT_FALSE(script.empty());
  const std::string schema = make_schema();
  postgres_server::get().sql("SET search_path = " + schema + ";\n" + script);
  check_kept_store([schema](runtime& rt) { return storage_in(schema, rt); });
}

}  // namespace
}  // namespace troupe::test
