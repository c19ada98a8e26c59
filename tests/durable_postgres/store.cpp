// Durable actors on PostgreSQL: the tests of every storage.
#include "durable/store_suite.hpp"
#include "durable_postgres/place.hpp"

namespace troupe::test {

std::string make_place(const scratch&) { return make_schema(); }
std::unique_ptr<durable::storage> storage_at(const std::string& place, runtime& rt) {
  return storage_in(place, rt);
}

namespace {

std::vector<setting> short_settings() {
  return {{policy::work_stealing, 2, 1}, {policy::shared_queue, 1, 1}};
}
INSTANTIATE_TEST_SUITE_P(settings, durable_stores, ::testing::ValuesIn(short_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
