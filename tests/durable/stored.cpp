// Stores that an earlier version of the library has written are opened, and go on. `stored/` has
// them, with the program that wrote each.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "durable/stored/before_exact.hpp"
#include "durable/stored/check.hpp"
#include "support/scratch.hpp"
#include "troupe/durable/sqlite_storage.hpp"

namespace troupe::test {
namespace {

TEST(durable_stored, a_sqlite_file_from_before_identities_goes_on) {
  const scratch folder;
  const std::string copy = folder / "copy.db";
  std::filesystem::copy_file(
      source_folder() / "tests" / "durable" / "stored" / "before_identity.db", copy);
  check_kept_store([copy](runtime& rt) { return durable::sqlite_storage(rt, copy); });
}

template <class Bill>
void open_bills(const std::string& file, int shown) {
  run_task([&](runtime& rt) -> task<> {
    auto opens = unclear::open<Bill>(rt, durable::sqlite_storage(rt, file));
    const durable::store store = co_await std::move(opens);
    if (shown == 0) co_return;
    EXPECT_EQ(co_await store.get<Bill>("b").template ask<&Bill::look>(), shown);
  });
}

// The version that wrote it did not tell these types apart: the first program to open it marks it.
TEST(durable_stored, a_sqlite_file_from_before_exact_shapes_is_marked_once) {
  using namespace unclear;
  const scratch folder;
  const std::string file = folder / "copy.db";
  std::filesystem::copy_file(source_folder() / "tests" / "durable" / "stored" / "before_exact.db",
                             file);
  open_bills<bill>(file, 1'500);
  open_bills<bill>(file, 1'500);
  EXPECT_THROW((open_bills<bill_of<status, bank::paid, card::paid>>(file, 0)),
               durable::schema_error);
  EXPECT_THROW((open_bills<bill_of<status_moved, card::paid, bank::paid>>(file, 0)),
               durable::schema_error);
  open_bills<bill>(file, 1'500);
}

}  // namespace
}  // namespace troupe::test
