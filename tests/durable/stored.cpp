// Stores that an earlier version of the library has written are opened, and go on. `stored/` has
// them, with the program that wrote each.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

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

}  // namespace
}  // namespace troupe::test
