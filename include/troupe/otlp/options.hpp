// otlp::exporter_options: which spans are recorded, and where they, the metrics and the log are
// sent.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/tls/options.hpp"

namespace troupe::otlp {

// Options of an exporter. The comment of each names its unit, its default and its effect.
//
// Example (declarations):
//     troupe::otlp::exporter_options for_shop() {
//       auto options = troupe::otlp::exporter_options::from_environment();
//       options.service_name = "shop";
//       options.rate = 0.1;
//       return options;
//     }
struct exporter_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  exporter_options() {}
  // The options that the environment names, as all programs with OpenTelemetry know them:
  //   url           OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT, to which
  //                 "/v1/traces" is added
  //   fields        OTEL_EXPORTER_OTLP_TRACES_HEADERS, or OTEL_EXPORTER_OTLP_HEADERS
  //   service_name  OTEL_SERVICE_NAME, or service.name of the attributes
  //   attributes    OTEL_RESOURCE_ATTRIBUTES
  //   rate, parent_based   OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; the latter alone is the
  //                 rate
  //   metrics_url   OTEL_EXPORTER_OTLP_METRICS_ENDPOINT; or, if OTEL_METRICS_EXPORTER is `otlp`,
  //                 OTEL_EXPORTER_OTLP_ENDPOINT, to which "/v1/metrics" is added. `none`: empty
  //   metrics_fields   OTEL_EXPORTER_OTLP_METRICS_HEADERS, or OTEL_EXPORTER_OTLP_HEADERS
  //   metrics_interval   OTEL_METRIC_EXPORT_INTERVAL, in milliseconds
  //   logs_url, logs_fields   OTEL_LOGS_EXPORTER, OTEL_EXPORTER_OTLP_LOGS_ENDPOINT and
  //                 OTEL_EXPORTER_OTLP_LOGS_HEADERS, as for metrics, with "/v1/logs"
  // Headers and attributes are lists `key=value,key=value`, percent-encoded. A variable that is
  // malformed counts as unset, and one line on standard error names all such variables.
  static exporter_options from_environment();

  // Where the collector takes spans as JSON: a URL of the scheme http or https.
  std::string url = "http://127.0.0.1:4318/v1/traces";
  // How the collector calls this program.
  std::string service_name = "unknown_service";
  // More attributes of the program, such as "service.version".
  std::vector<std::pair<std::string, std::string>> attributes;
  // Fields of each request, such as "Authorization".
  std::vector<std::pair<std::string, std::string>> fields;
  // Where the collector takes metrics as JSON: a URL of the scheme http or https. Default: empty,
  // no metrics are sent. Metrics are all numbers of `/metrics`: of the process, of its observed
  // runtimes, and the program's own.
  std::string metrics_url;
  // Fields of each request with metrics.
  std::vector<std::pair<std::string, std::string>> metrics_fields;
  // How often metrics are sent, and once more at the end, before the spans that wait. Default 60 s.
  // A request that fails is not repeated: the next one has all sums so far.
  time_span metrics_interval = std::chrono::seconds(60);
  // Where the collector takes lines of the log as JSON: a URL of the scheme http or https. Default:
  // empty, no lines are sent. The log still gets them.
  std::string logs_url;
  // Fields of each request with lines of the log.
  std::vector<std::pair<std::string, std::string>> logs_fields;
  // Maximum number of lines of the log that wait to be sent. Default 2,048, at least 1; one more is
  // not sent, and counted. A line takes about 300 bytes, its text and its fields, each of which is
  // cut off after 8 KiB.
  std::size_t log_lines = 2048;
  // Which certificates are trusted, if a URL is one of https.
  tls_options tls;

  // The part of the traces that are recorded, of those that begin in this program, from 0 to 1.
  // Default 1.
  double rate = 1;
  // Whether a trace that arrives with a request of HTTP is recorded if its caller records it.
  // Default true. Otherwise `rate` decides for it as well, by the number of the trace: programs
  // of this library with the same rate decide alike.
  bool parent_based = true;
  // Maximum number of spans that wait to be sent. Default 8,192, at least 1; one more is dropped
  // and counted. A span takes about 500 bytes.
  std::size_t spans = 8192;
  // Maximum number of spans, or of lines of the log, in one request. Default 512, at least 1.
  std::size_t batch = 512;
  // After this time spans and lines are sent though they are no whole batch. Default 1 s.
  time_span interval = std::chrono::seconds(1);
  // Time for one request. Default 10 s.
  time_span request_time = std::chrono::seconds(10);
  // How often a batch is sent that the collector could not take for the moment (no connection, no
  // answer, or status 429, 502, 503 or 504). Then it is dropped and counted. Default 5, at least 1.
  // The first pause is `interval`, each one twice as long as the one before, and at most 30 s, or
  // the collector's Retry-After, if that is less.
  int attempts = 5;
  // Time in which the destructor sends the metrics, for which it has half of the time, and the
  // spans and lines that wait. Default 2 s; 0: it sends nothing.
  time_span flush_time = std::chrono::seconds(2);
};

}  // namespace troupe::otlp
