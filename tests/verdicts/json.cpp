// The error of JSON.
#include <gtest/gtest.h>

#include "troupe/json/error.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_json) {
  expect_verdicts({
      {"json::json_error", "", made<json::json_error>("a", "x"), {caller, none, never}},
  });
}

}  // namespace
}  // namespace troupe::test
