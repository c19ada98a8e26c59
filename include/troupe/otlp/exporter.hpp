// otlp::exporter: records the spans of this program, and sends them, its metrics and the lines of
// its log to a collector.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <memory>

#include "troupe/base/time_span.hpp"
#include "troupe/otlp/options.hpp"

namespace troupe::otlp {

// Counts of spans and of lines of the log so far, by outcome, and of requests with spans, metrics
// or lines.
struct exporter_counts {
  std::uint64_t exported = 0;  // the collector has taken them
  // No space was left for them, or the collector did not take them in time.
  std::uint64_t dropped = 0;
  std::uint64_t rejected = 0;  // the collector has refused them
  std::uint64_t waiting = 0;   // in this moment
  // The same of lines of the log, if there is a URL for them.
  std::uint64_t exported_lines = 0, dropped_lines = 0, rejected_lines = 0, waiting_lines = 0;
  std::uint64_t requests = 0, failed_requests = 0;
};

// While it exists, the program's spans are recorded: one for each request of an http::server, for
// each call of an http::client, for each ask of a handler, `blocking` call and lazy within a trace,
// and for each with_span. They are sent to a collector in the background, by OTLP/HTTP in JSON, on
// a thread of the exporter's own, as are the program's metrics and the lines that its loggers write
// (troupe::log), if there are URLs for them; lines have a thread of their own. Spans and lines are
// dropped, and counted, when the collector is slow or unreachable: the program never waits for it.
//
// A span has the names of classes, handlers, functions and routes, HTTP methods and statuses,
// hosts and ports, classes of exceptions, and the attributes that span_attribute() adds; neither
// arguments, bodies, fields, paths, queries, nor the texts of exceptions. A line of the log has its
// time, level, text and fields, its logger as the scope, and the actor, trace and span in which it
// was logged.
//
// Thread: any. At most one at a time. Lifetime: the destructor waits for at most flush_time;
// destroy the exporter after the runtime, so that the last spans are sent. Cost: about 1 us a span;
// while there is none, one branch. Errors: option_error for options that make no sense; usage_error
// if there is another exporter. A fault of the environment (an unreachable collector, a thread that
// cannot be started, a certificate that cannot be read) is no error: a line on standard error
// reports it, and it is tried again.
//
// Example (declarations):
//     #include <troupe/troupe.hpp>
//     void run_shop() {
//       troupe::otlp::exporter_options options;
//       options.service_name = "shop";
//       const troupe::otlp::exporter spans(std::move(options));
//       troupe::runtime rt;
//       rt.spawn([]() -> troupe::task<> {
//         co_await troupe::with_span("start", troupe::sleep_for(std::chrono::milliseconds(1)));
//       });
//       rt.run();
//     }
class exporter {
 public:
  explicit exporter(exporter_options options);
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;
  ~exporter();

  // Thread: any.
  exporter_counts counts() const;
  // Sends the spans and lines that wait now, and returns whether all of it was sent, or given up,
  // in that time. Blocks the calling thread, which must not be one of the runtime's: usage_error.
  bool flush(time_span at_most);

 private:
  class worker;
  std::unique_ptr<worker> worker_;
};

}  // namespace troupe::otlp
