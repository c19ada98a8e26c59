// Each pair of a type of C++ and a type of PostgreSQL at its edges, both ways, in the binary form
// and in the text form: the value arrives exactly, or the call fails as `conversion`.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "postgres/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono;
using micro_time = sys_time<microseconds>;

constexpr const char* refused = "refused";

template <class T>
std::string words(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value) ? "NaN" : std::to_string(std::bit_cast<std::uint64_t>(double{value}));
  } else if constexpr (requires { value.time_since_epoch(); }) {
    return std::to_string(value.time_since_epoch().count());
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(+value);
  } else {
    return value;
  }
}

// A value of the server, read as T; beside a column that PostgreSQL gives as a text, all are texts.
template <class T>
task<std::string> read_as(postgres::connection db, std::string expression, bool in_text) {
  try {
    if (in_text) {
      const auto row = co_await db.query_one<std::tuple<T, std::string>>("SELECT " + expression +
                                                                         " AS v, '{}'::int[] AS t");
      co_return words(std::get<0>(*row));
    }
    const auto one = co_await db.query_one<T>("SELECT " + expression + " AS v");
    co_return words(*one);
  } catch (const database::error& failed) {
    co_return failed.kind() == database::failure::conversion ? refused : failed.what();
  }
}

struct reading {
  const char* name;
  const char* expression;
  task<std::string> (*read)(postgres::connection, std::string, bool);
  std::string expected;
};

template <class T>
reading exact(const char* name, const char* expression, T expected) {
  return {name, expression, &read_as<T>, words(expected)};
}
template <class T>
reading refuses(const char* name, const char* expression) {
  return {name, expression, &read_as<T>, refused};
}

constexpr micro_time day_of(std::int64_t days_since_1970) {
  return micro_time(microseconds(days_since_1970 * 86'400'000'000));
}

std::vector<reading> whole_numbers() {
  return {
      exact<std::int8_t>("int2 -> int8_t", "(-128)::int2", -128),
      refuses<std::int8_t>("int2 -> int8_t, beyond", "128::int2"),
      refuses<std::uint8_t>("int2 -> uint8_t, negative", "(-1)::int2"),
      exact<std::uint16_t>("int4 -> uint16_t", "65535::int4", 65'535),
      refuses<std::uint16_t>("int4 -> uint16_t, beyond", "65536::int4"),
      exact<std::int64_t>("int8 -> int64_t", "(-9223372036854775808)::int8", INT64_MIN),
      refuses<std::int32_t>("int8 -> int32_t", "2147483648::int8"),
      refuses<std::uint64_t>("int8 -> uint64_t", "(-1)::int8"),
      exact<std::int64_t>("numeric -> int64_t", "9223372036854775807.000::numeric", INT64_MAX),
      refuses<std::int64_t>("numeric -> int64_t, beyond", "9223372036854775808::numeric"),
      refuses<std::int64_t>("numeric -> int64_t, a fraction", "0.5::numeric"),
      refuses<bool>("int4 -> bool", "2::int4"),
      refuses<std::int64_t>("float8 -> int64_t", "1::float8"),
  };
}

std::vector<reading> floating_numbers() {
  constexpr double huge = std::numeric_limits<double>::max();
  return {
      exact<double>("int8 -> double", "9007199254740992::int8", 0x1p53),
      exact<double>("int8 -> double, a power of two", "(-9223372036854775808)::int8", -0x1p63),
      refuses<double>("int8 -> double, between two", "9007199254740993::int8"),
      refuses<float>("int4 -> float, between two", "16777217::int4"),
      exact<float>("int4 -> float", "16777216::int4", 0x1p24f),
      exact<double>("float8 -> double", "1.7976931348623157e308::float8", huge),
      exact<double>("float8 -> double, the least", "5e-324::float8", 5e-324),
      exact<double>("float8 -> double, infinity", "'-Infinity'::float8", -HUGE_VAL),
      exact<double>("float8 -> double, NaN", "'NaN'::float8", std::nan("")),
      exact<float>("float8 -> float, the nearest", "0.1::float8", 0.1f),
      exact<float>("float8 -> float, infinity", "'Infinity'::float8", HUGE_VALF),
      refuses<float>("float8 -> float, beyond", "1e300::float8"),
      refuses<float>("float8 -> float, would be 0", "1e-300::float8"),
      refuses<float>("float8 -> float, between two", "16777217::float8"),
      exact<double>("float4 -> double", "0.1::float4", double{0.1f}),
      exact<double>("numeric -> double", "0.1::numeric", 0.1),
      exact<double>("numeric -> double, the nearest",
                    "(SELECT avg(x) FROM (VALUES (1), (2), (2)) AS a(x))", 5.0 / 3),
      exact<double>("numeric -> double, NaN", "'NaN'::numeric", std::nan("")),
      exact<double>("numeric -> double, whole", "100000000000000000000::numeric", 1e20),
      exact<double>("numeric -> double, whole with a scale", "9007199254740992.00::numeric",
                    0x1p53),
      refuses<double>("numeric -> double, between two", "9007199254740993::numeric"),
      refuses<double>("numeric -> double, beyond", "1e400::numeric"),
      refuses<double>("numeric -> double, would be 0",
                      "('0.' || repeat('0', 399) || '1')::numeric"),
  };
}

std::vector<reading> times() {
  return {
      exact<micro_time>("timestamptz -> microseconds",
                        "'1970-01-01 00:00:00.000001+00'::timestamptz",
                        micro_time(microseconds(1))),
      exact<micro_time>("timestamptz -> microseconds, BC",
                        "'0044-03-15 12:00:00+00 BC'::timestamptz",
                        micro_time(microseconds(-63'517'780'800'000'000))),
      exact<micro_time>("timestamptz -> microseconds, 40000",
                        "'40000-01-01 00:00:00+00'::timestamptz",
                        micro_time(microseconds(1'200'110'860'800'000'000))),
      exact<sys_seconds>("timestamptz -> seconds", "'9999-12-31 23:59:59+00'::timestamptz",
                         sys_seconds(seconds(253'402'300'799))),
      refuses<sys_seconds>("timestamptz -> seconds, a fraction",
                           "'2020-01-01 00:00:00.75+00'::timestamptz"),
      refuses<sys_days>("timestamptz -> days, noon", "'2020-01-01 12:00:00+00'::timestamptz"),
      exact<system_clock::time_point>(
          "timestamptz -> nanoseconds", "'2262-04-11 23:47:16.854775+00'::timestamptz",
          system_clock::time_point(nanoseconds(9'223'372'036'854'775'000))),
      refuses<system_clock::time_point>("timestamptz -> nanoseconds, beyond",
                                        "'2262-04-11 23:47:16.854776+00'::timestamptz"),
      refuses<system_clock::time_point>("timestamptz -> nanoseconds, long ago",
                                        "'1500-01-01 00:00:00+00'::timestamptz"),
      refuses<micro_time>("timestamptz -> microseconds, infinity", "'infinity'::timestamptz"),
      refuses<micro_time>("timestamptz -> microseconds, -infinity", "'-infinity'::timestamptz"),
      exact<sys_days>("date -> days", "'0001-01-01'::date", sys_days(days(-719'162))),
      exact<micro_time>("date -> microseconds, BC", "'4713-11-24 BC'::date", day_of(-2'440'222)),
      exact<sys_days>("date -> days, 9999", "'9999-12-31'::date", sys_days(days(2'932'896))),
      refuses<sys_days>("date -> days, infinity", "'infinity'::date"),
      refuses<sys_days>("date -> days, -infinity", "'-infinity'::date"),
      refuses<micro_time>("date -> microseconds, beyond", "'5874897-12-31'::date"),
      refuses<system_clock::time_point>("date -> nanoseconds, beyond", "'9999-12-31'::date"),
  };
}

// A value of the program, as the server's text of it.
template <class T>
task<std::string> give(postgres::connection db, std::string type, T value) {
  try {
    const auto text = co_await db.query_one<std::string>("SELECT ($1::" + type + ")::text", value);
    co_return *text;
  } catch (const database::error& failed) {
    co_return failed.kind() == database::failure::conversion ? refused : failed.what();
  }
}
// The same within an array, which travels as a text.
template <class T>
task<std::string> give_in_array(postgres::connection db, std::string type, T value) {
  const std::vector<T> elements(1, value);
  try {
    const auto text =
        co_await db.query_one<std::string>("SELECT (($1::" + type + "[])[1])::text", elements);
    co_return *text;
  } catch (const database::error& failed) {
    co_return failed.kind() == database::failure::conversion ? refused : failed.what();
  }
}

struct giving {
  const char* type;
  std::function<task<std::string>(postgres::connection, std::string, bool)> give;
  std::string expected;
};
template <class T>
giving given(const char* type, T value, std::string expected) {
  return {type,
          [value](postgres::connection db, std::string as, bool in_array) {
            return in_array ? give_in_array(std::move(db), std::move(as), value)
                            : test::give(std::move(db), std::move(as), value);
          },
          std::move(expected)};
}

std::vector<giving> givings() {
  return {
      given("int2", 32'768, refused),
      given("int4", std::int64_t{2'147'483'648}, refused),
      given("int8", UINT64_MAX, refused),
      given("int8", INT64_MIN, "-9223372036854775808"),
      given("numeric", INT64_MAX, "9223372036854775807"),
      given("float8", 5e-324, "5e-324"),
      given("float8", std::nan(""), "NaN"),
      given("float4", 0.1, "0.1"),
      given("float4", HUGE_VAL, "Infinity"),
      given("float4", 1e300, refused),
      given("float4", 1e-300, refused),
      given("float4", 16'777'217.0, refused),
      given("numeric", 0.1, "0.1"),
      given("timestamptz", sys_seconds::max(), refused),
      given("timestamptz", sys_days(days(INT32_MAX)), refused),
      given("timestamptz", sys_days::max(), refused),
      given("timestamptz", sys_seconds::min(), refused),
      given("timestamptz", micro_time(microseconds(1)), "1970-01-01 00:00:00.000001+00"),
      given("timestamptz", micro_time(microseconds(1'200'110'860'800'000'000)),
            "40000-01-01 00:00:00+00"),
      given("timestamptz", micro_time(microseconds(-63'517'780'800'000'000)),
            "0044-03-15 12:00:00+00 BC"),
      given("date", sys_days(days(2'932'896)), "9999-12-31"),
      given("date", sys_days(days(-719'163)), "0001-12-31 BC"),
  };
}

class postgres_values : public postgres_fixture {};

TEST_P(postgres_values, arrive_exactly_or_are_refused) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script("SET timezone = 'UTC'");
    for (const bool in_text : {false, true}) {
      for (const auto& of : {whole_numbers(), floating_numbers(), times()}) {
        for (const reading& one : of) {
          task<std::string> reads = one.read(db, one.expression, in_text);
          const std::string got = co_await std::move(reads);
          EXPECT_EQ(got, one.expected) << one.name << (in_text ? ", as a text" : "");
        }
      }
    }
  });
}

TEST_P(postgres_values, rows_may_have_no_columns) {
  with([](postgres::connection db) -> task<> {
    const auto rows = co_await db.query<std::tuple<>>("SELECT FROM generate_series(1, 1000)");
    EXPECT_EQ(rows.size(), 1'000u);
    EXPECT_TRUE((co_await db.query_one<std::tuple<>>("SELECT")).has_value());
  });
}

// What the server itself refuses in an array's text is an error of its own.
TEST_P(postgres_values, are_given_exactly_or_refused) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script("SET timezone = 'UTC'");
    for (const giving& one : givings()) {
      task<std::string> alone = one.give(db, one.type, false);
      const std::string got = co_await std::move(alone);
      EXPECT_EQ(got, one.expected) << one.type;
      if (one.expected == refused) continue;
      task<std::string> in_array = one.give(db, one.type, true);
      const std::string beside = co_await std::move(in_array);
      EXPECT_EQ(beside, one.expected) << one.type << " in an array";
    }
  });
}

TROUPE_TEST_EACH(postgres_values, threaded_settings);

}  // namespace
}  // namespace troupe::test
