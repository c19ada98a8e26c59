#include "observe_page/metrics.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace troupe::observe_page {
namespace {

TEST(metrics_text, takes_only_a_summary) {
  EXPECT_NE(as_metrics("{\"runtimes\":[]}").find("# TYPE troupe_up_seconds gauge"),
            std::string::npos);
  for (const char* const other : {"", "{", "[]", "1", "{\"error\":\"no\"}"})
    EXPECT_THROW(as_metrics(other), std::runtime_error) << other;
}

}  // namespace
}  // namespace troupe::observe_page
