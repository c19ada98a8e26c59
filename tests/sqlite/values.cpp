// Each pair of a type of C++ and a type of SQLite at its edges, both ways: the value arrives
// exactly, or the call fails as `conversion`.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>

#include "support/conformance.hpp"
#include "troupe/database/error.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono;

class sqlite_values : public conformance {
 protected:
  template <class Test>
  void with(Test test) {
    runtime rt(options());
    future<> done = rt.spawn(test(sqlite::connection(rt, ":memory:")));
    rt.run();
    done.get();
  }
};

template <class T>
task<> reads(sqlite::connection db, const char* expression, std::optional<T> expected) {
  std::optional<T> got;
  std::string failed;
  try {
    got = co_await db.query_one<T>(std::string("SELECT ") + expression);
  } catch (const database::error& e) {
    failed = database::name_of(e.kind());
  }
  EXPECT_EQ(got, expected) << expression << ' ' << failed;
  EXPECT_EQ(failed, expected ? "" : "conversion") << expression;
}
template <class T>
task<> gives(sqlite::connection db, T value, std::optional<std::string> expected) {
  std::optional<std::string> got;
  std::string failed;
  try {
    got = co_await db.query_one<std::string>("SELECT CAST($1 AS TEXT)", value);
  } catch (const database::error& e) {
    failed = database::name_of(e.kind());
  }
  EXPECT_EQ(got, expected) << failed;
  EXPECT_EQ(failed, expected ? "" : "conversion");
}

TEST_P(sqlite_values, arrive_exactly_or_are_refused) {
  with([](sqlite::connection db) -> task<> {
    co_await reads<std::int8_t>(db, "-128", -128);
    co_await reads<std::int8_t>(db, "128", {});
    co_await reads<std::uint64_t>(db, "-1", {});
    co_await reads<std::int64_t>(db, "-9223372036854775808", INT64_MIN);
    co_await reads<std::int64_t>(db, "1.0", {});
    co_await reads<bool>(db, "2", {});
    co_await reads<double>(db, "9007199254740992", 0x1p53);
    co_await reads<double>(db, "9007199254740993", {});
    co_await reads<float>(db, "0.1", 0.1f);
    co_await reads<float>(db, "16777217", {});
    co_await reads<float>(db, "16777217.0", {});
    co_await reads<float>(db, "1e300", {});
    co_await reads<float>(db, "1e-300", {});
    co_await reads<float>(db, "9e999", HUGE_VALF);
    co_await reads<sys_seconds>(db, "1500000", {});
    co_await reads<sys_seconds>(db, "2000000", sys_seconds(seconds(2)));
    co_await reads<sys_days>(db, "86400000001", {});
    co_await reads<system_clock::time_point>(db, "253402214400000000", {});
    co_await reads<system_clock::time_point>(db, "-1000000", system_clock::time_point(-seconds(1)));
  });
}

TEST_P(sqlite_values, are_given_exactly_or_refused) {
  with([](sqlite::connection db) -> task<> {
    co_await gives(db, UINT64_MAX, {});
    co_await gives(db, INT64_MIN, "-9223372036854775808");
    co_await gives(db, std::nan(""), {});
    co_await gives(db, HUGE_VAL, "Inf");
    co_await gives(db, sys_seconds::max(), {});
    co_await gives(db, sys_seconds::min(), {});
    co_await gives(db, sys_days::max(), {});
    co_await gives(db, sys_seconds(seconds(-2)), "-2000000");
  });
}

TROUPE_TEST_EACH(sqlite_values, each_policy);

}  // namespace
}  // namespace troupe::test
