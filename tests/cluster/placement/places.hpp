// places: where the tests of placement keep leases: in memory, in a SQLite file, or in a PostgreSQL
// database.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "cluster/leases/memory_leases.hpp"
#include "cluster/leases/postgres_leases.hpp"
#include "cluster/leases/sqlite_leases.hpp"
#include "postgres/cluster.hpp"
#include "support/conformance.hpp"
#include "support/scratch.hpp"

namespace troupe::test {

// Stores of one place see the same leases.
using lease_place = std::function<std::unique_ptr<troupe::cluster::lease_store>(runtime&)>;

struct lease_place_kind {
  const char* name;
  policy runs_on;
  lease_place (*make)();
  std::string (*why_not)();
};
inline std::ostream& operator<<(std::ostream& out, const lease_place_kind& one) {
  return out << one.name;
}

inline lease_place make_memory_place() {
  const troupe::cluster::memory_leases leases;
  return [leases](runtime&) { return leases.store(); };
}

// The file goes with the last copy of the place.
inline lease_place make_sqlite_place() {
  const auto folder = std::make_shared<const scratch>();
  return
      [folder](runtime& rt) { return troupe::cluster::sqlite_leases(rt, *folder / "cluster.db"); };
}

// In a schema of its own.
inline lease_place make_postgres_place() {
  static int made = 0;
  const std::string schema = "leases" + std::to_string(++made);
  postgres_server::get().sql("CREATE SCHEMA " + schema);
  const std::string target = postgres_server::get().target("options=-csearch_path=" + schema);
  return [target](runtime& rt) { return troupe::cluster::postgres_leases(rt, target); };
}
inline std::string why_no_postgres() {
#if defined(__SANITIZE_THREAD__)
  return "needs a build without ThreadSanitizer: an exception that libpq's caller reads is "
         "reported as a race (tests/CMakeLists.txt)";
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return "needs a build without ThreadSanitizer: an exception that libpq's caller reads is "
         "reported as a race (tests/CMakeLists.txt)";
#endif
#endif
  return postgres_server::get().why_not();
}

inline const lease_place_kind lease_place_kinds[] = {
    {"in_memory", policy::work_stealing, make_memory_place, [] { return std::string(); }},
    {"simulated", policy::simulated, make_memory_place, [] { return std::string(); }},
    {"in_sqlite", policy::work_stealing, make_sqlite_place, [] { return std::string(); }},
    {"in_postgres", policy::work_stealing, make_postgres_place, why_no_postgres},
};

}  // namespace troupe::test
