// place: where the tests of durable actors on PostgreSQL store: in a schema of their own.
#pragma once

#include <memory>
#include <string>

#include "postgres/cluster.hpp"
#include "troupe/durable_postgres/postgres_storage.hpp"

namespace troupe::test {

// Makes the schema. A program for each test, and one for all of them: the number tells them apart.
inline std::string make_schema() {
  static int made = 0;
  const std::string name = "store" + std::to_string(++made);
  postgres_server::get().sql("CREATE SCHEMA " + name);
  return name;
}
inline std::string schema_target(const std::string& schema) {
  return postgres_server::get().target("options=-csearch_path=" + schema);
}
inline std::unique_ptr<durable::storage> storage_in(const std::string& schema, runtime& rt) {
  return durable::postgres_storage(rt, schema_target(schema));
}

}  // namespace troupe::test
