// Durable actors on SQLite.
#include "durable/store_suite.hpp"
#include "troupe/durable/sqlite_storage.hpp"

namespace troupe::test {

std::string make_place(const scratch& folder) { return folder / "store.db"; }
std::unique_ptr<durable::storage> storage_at(const std::string& place, runtime& rt) {
  sqlite::options unsynced;
  unsynced.stored = sqlite::durability::normal;
  return durable::sqlite_storage(rt, place, unsynced);
}

namespace {

INSTANTIATE_TEST_SUITE_P(settings, durable_stores, ::testing::ValuesIn(all_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
