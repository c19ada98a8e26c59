#include "otlp/environment.hpp"

#include <gtest/gtest.h>

namespace troupe::otlp {
namespace {

TEST(otlp_environment, reads_lists_of_keys_and_values) {
  EXPECT_EQ(read_key_values(""), key_values());
  EXPECT_EQ(read_key_values(" , ,"), key_values());
  EXPECT_EQ(read_key_values("a=b"), (key_values{{"a", "b"}}));
  EXPECT_EQ(read_key_values(" a = b c ,d=,"), (key_values{{"a", "b c"}, {"d", ""}}));
  EXPECT_EQ(read_key_values("a=b=c%2C%3D+"), (key_values{{"a", "b=c,=+"}}));
  EXPECT_EQ(read_key_values("a=1,b=2,a=3"), (key_values{{"b", "2"}, {"a", "3"}}));
  for (const char* const bad : {"a", "=", "=b", "a=b,c", "a=%", "a=%1", "a=%zz", "%zz=a", "a=%00"})
    EXPECT_EQ(read_key_values(bad), std::nullopt) << bad;
}

TEST(otlp_environment, samplers_are_those_of_the_specification) {
  struct sampler_case {
    const char *sampler, *argument;
    double rate;
    bool parent_based, is_good;
  };
  constexpr sampler_case cases[] = {
      {nullptr, nullptr, 1, true, true},
      {nullptr, "0.5", 0.5, true, true},
      {"always_on", "0.5", 1, false, true},
      {"always_off", nullptr, 0, false, true},
      {"traceidratio", "0.25", 0.25, false, true},
      {"TraceIdRatio", nullptr, 1, false, true},
      {"parentbased_always_on", "x", 1, true, true},
      {"parentbased_always_off", nullptr, 0, true, true},
      {"parentbased_traceidratio", "0", 0, true, true},
      {"traceidratio", "1.5", 1, false, false},
      {nullptr, "x", 1, true, false},
      {"jaeger_remote", "0.5", 1, true, false},
      {"parentbased_", nullptr, 1, true, false},
      {"parentbased_jaeger_remote", nullptr, 1, true, false},
  };
  for (const sampler_case& one : cases) {
    exporter_options made;
    const std::string why = read_sampler(one.sampler, one.argument, made);
    const std::string what = std::string(one.sampler != nullptr ? one.sampler : "-") + " " +
                             (one.argument != nullptr ? one.argument : "-");
    EXPECT_EQ(made.rate, one.rate) << what;
    EXPECT_EQ(made.parent_based, one.parent_based) << what;
    EXPECT_EQ(why.empty(), one.is_good) << what << ": " << why;
  }
}

TEST(otlp_environment, metrics_and_logs_are_sent_if_they_are_asked_for) {
  const struct {
    const char *exporter, *exact, *base;
    std::string url;
    bool is_good = true;
  } cases[] = {
      {"", nullptr, nullptr, ""},
      {"", nullptr, "http://a:1", ""},
      {"otlp", nullptr, nullptr, "http://127.0.0.1:4318/v1/PATH"},
      {"otlp", nullptr, "http://a:1/", "http://a:1/v1/PATH"},
      {"", "http://b:2/m", nullptr, "http://b:2/m"},
      {"otlp", "http://b:2/m", "http://a:1", "http://b:2/m"},
      {"none", "http://b:2/m", "http://a:1", ""},
      {"console", "http://b:2/m", nullptr, "", false},
      {"", "no url", nullptr, "", false},
      {"otlp", nullptr, "no url", "", false},
  };
  for (const std::string path : {"/v1/metrics", "/v1/logs"}) {
    for (const auto& [exporter, exact, base, expected, is_good] : cases) {
      std::string url = "before", wanted = expected;
      if (const std::size_t at = wanted.find("/v1/PATH"); at != std::string::npos)
        wanted.replace(at, std::string::npos, path);
      const std::string why = choose_url({"OTEL_A_EXPORTER", path, exporter, exact, base}, url);
      EXPECT_EQ(url, wanted) << exporter << path;
      EXPECT_EQ(why.empty(), is_good) << why;
    }
  }
}

}  // namespace
}  // namespace troupe::otlp
