#include "database/statement_counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "observe/numbers/registry.hpp"

namespace troupe::database {
namespace {

TEST(statement_counts, texts_have_no_values) {
  struct expected {
    const char *statement, *label;
  };
  for (const expected& one :
       {expected{"", ""},
        {"SELECT 1", "SELECT ?"},
        {"  select  a,\n\tb from t ", "select a, b from t"},
        {"SELECT * FROM t WHERE a = $1 AND b = ?", "SELECT * FROM t WHERE a = $1 AND b = ?"},
        {"INSERT INTO t2 VALUES ('it''s', -3.5e7, 0x1F)", "INSERT INTO t2 VALUES (?, -?, ?)"},
        {"SELECT E'a\\'secret' || 'b'", "SELECT E?"},
        {"SELECT 'a\\', 'secret'", "SELECT ?"},
        {"SELECT 'C:\\a', 'b'", "SELECT ?, ?"},
        {"SELECT \"it's\", 'secret'", "SELECT ?, ?"},
        {"SELECT `it's`, 'secret'", "SELECT ?, ?"},
        {"/* a /* b */ it's */ SELECT 'secret'", "SELECT ?"},
        {"SELECT $$secret$$, $x$a $$ b$x$, $12", "SELECT ?, ?, $12"},
        {"SELECT a -- secret\nFROM t /* secret */ WHERE b", "SELECT a FROM t WHERE b"},
        {"SELECT 'never closed", "SELECT ?"},
        {"SELECT $$never closed", "SELECT ?"},
        {"SELECT a /* never closed", "SELECT a"},
        {"SELECT \"Name 1\" FROM t", "SELECT ? FROM t"}})
    EXPECT_EQ(normalized(one.statement), one.label) << one.statement;
  EXPECT_EQ(normalized(std::string(1000, 'a')).size(), 200u);
}

// At the limit, and past it.
TEST(statement_counts, too_many_texts_are_counted_together) {
  for (int i = 0; i < 205; ++i)
    statement_ends("test", "SELECT a" + std::to_string(i), 1, i % 2 == 1);
  statement_ends("test", "SELECT not_counted", 0, false);
  observe::number_tables all;
  observe::collect_sources(all);
  const auto found =
      std::ranges::find(all.all(), "troupe_database_statement", &observe::number_rows::prefix);
  ASSERT_NE(found, all.all().end());
  EXPECT_EQ(found->rows.size(), 201u);
  const auto others = std::ranges::find_if(
      found->rows, [](const auto& row) { return row.labels.at(1) == "(others)"; });
  ASSERT_NE(others, found->rows.end());
  EXPECT_EQ(std::get<observe::distribution>(others->values[0]).count(), 5u);
  EXPECT_EQ(std::get<std::uint64_t>(others->values[1]), 2u);
}

}  // namespace
}  // namespace troupe::database
