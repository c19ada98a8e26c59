// exporter: the lists of spans and of the log's lines, and a thread for each of them.
#include "troupe/otlp/exporter.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "log/records.hpp"
#include "observe/numbers/registry.hpp"
#include "otlp/encoding/logs.hpp"
#include "otlp/encoding/spans_body.hpp"
#include "otlp/export_thread.hpp"
#include "otlp/record_source.hpp"
#include "otlp/requests.hpp"
#include "task/traces/spans.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::otlp {
namespace {

using namespace std::chrono_literals;
using log::kept_lines;
using tasks::ended_spans;

void check_metrics(const exporter_options& chosen) {
  if (chosen.metrics_interval <= 0ms)
    throw option_error("troupe: otlp::exporter_options::metrics_interval must be more than 0");
  std::string why;
  if (!chosen.metrics_url.empty() && !may_be_asked(chosen.metrics_url, chosen.metrics_fields, why))
    throw option_error(
        "troupe: otlp::exporter_options::metrics_url or metrics_fields cannot be used for a "
        "request: " +
        why);
}

void check_logs(const exporter_options& chosen) {
  if (chosen.log_lines == 0)
    throw option_error("troupe: otlp::exporter_options::log_lines must be at least 1");
  std::string why;
  if (!chosen.logs_url.empty() && !may_be_asked(chosen.logs_url, chosen.logs_fields, why))
    throw option_error(
        "troupe: otlp::exporter_options::logs_url or logs_fields cannot be used for a request: " +
        why);
}

void check(const exporter_options& chosen) {
  const auto refuse = [](const std::string& what) {
    throw option_error("troupe: otlp::exporter_options::" + what);
  };
  if (!(chosen.rate >= 0 && chosen.rate <= 1)) refuse("rate must be from 0 to 1");
  if (chosen.spans == 0) refuse("spans must be at least 1");
  if (chosen.batch == 0) refuse("batch must be at least 1");
  if (chosen.attempts < 1) refuse("attempts must be at least 1");
  if (chosen.interval <= 0ms) refuse("interval must be more than 0");
  if (chosen.request_time <= 0ms) refuse("request_time must be more than 0");
  if (chosen.flush_time < 0ms) refuse("flush_time must not be negative");
  if (std::string why; !may_be_asked(chosen.url, chosen.fields, why))
    refuse("url or fields cannot be those of a request: " + why);
  check_metrics(chosen);
  check_logs(chosen);
}

using observe::counter_of;
using observe::gauge_of;
const observe::number_table<exporter_counts> exporter_numbers{
    "troupe_otlp",
    {},
    {counter_of<&exporter_counts::exported>("exported_spans",
                                            "Spans that the collector has taken."),
     counter_of<&exporter_counts::dropped>(
         "dropped_spans", "Spans without space, or that the collector did not take in time."),
     counter_of<&exporter_counts::rejected>("rejected_spans",
                                            "Spans that the collector has refused."),
     gauge_of<&exporter_counts::waiting>("waiting_spans", "Spans that wait to be exported."),
     counter_of<&exporter_counts::exported_lines>("exported_log_lines",
                                                  "Lines of the log that the collector has taken."),
     counter_of<&exporter_counts::dropped_lines>(
         "dropped_log_lines",
         "Lines of the log without space, or that the collector did not take in time."),
     counter_of<&exporter_counts::rejected_lines>(
         "rejected_log_lines", "Lines of the log that the collector has refused."),
     gauge_of<&exporter_counts::waiting_lines>("waiting_log_lines",
                                               "Lines of the log that wait to be exported."),
     counter_of<&exporter_counts::requests>("requests", "Requests to the collector."),
     shows(observe::trouble::exporter_unavailable,
           counter_of<&exporter_counts::failed_requests>(
               "failed_requests", "Requests to the collector that failed."))}};

// One kind of records: their list, which is closed when the thread has ended, and that thread.
template <class List, class Record>
struct exported_kind {
  exported_kind(const exporter_options& options, const std::string& resource,
                const export_kind& kind, List& list,
                typename list_source<List, Record>::body_function body_of)
      : source(list, body_of), thread(options, resource, kind, source) {}
  list_source<List, Record> source;
  export_thread thread;
};

}  // namespace

class exporter::worker {
 public:
  explicit worker(exporter_options chosen)
      : options_(std::move(chosen)), resource_(resource_of(options_)) {
    check(options_);
    if (!ended_spans.open(options_.spans, std::min(options_.batch, options_.spans), options_.rate,
                          options_.parent_based))
      throw usage_error("troupe: otlp::exporter: there is one already: it has all spans");
    spans_.emplace(options_, resource_,
                   export_kind{"otlp", "spans", "rejectedSpans", options_.url, options_.fields,
                               span_export, true},
                   ended_spans, spans_body);
    if (!options_.logs_url.empty() &&
        kept_lines.open(options_.log_lines, std::min(options_.batch, options_.log_lines)))
      lines_.emplace(options_, resource_,
                     export_kind{"otlp logs", "log lines", "rejectedLogRecords", options_.logs_url,
                                 options_.logs_fields, logs_export, false},
                     kept_lines, logs_body);
    const auto read = [this](observe::row_sink& sink, const std::string&) {
      sink.add(exporter_numbers, {}, counts());
    };
    shown_.emplace(exporter_numbers, "", read);
  }

  ~worker() {
    shown_.reset();
    // Both have the same time. The list of spans, which only one exporter has, is closed last.
    spans_->thread.begin_to_end();
    if (lines_) lines_->thread.begin_to_end();
    spans_->thread.finish();
    lines_.reset();
    spans_.reset();
  }

  exporter_counts counts() const noexcept {
    exporter_counts now;
    const record_counts spans = spans_->thread.counts();
    now.exported = spans.exported;
    now.dropped = spans.dropped;
    now.rejected = spans.rejected;
    now.waiting = spans.waiting;
    now.requests = spans.requests;
    now.failed_requests = spans.failed_requests;
    if (!lines_) return now;
    const record_counts lines = lines_->thread.counts();
    now.exported_lines = lines.exported;
    now.dropped_lines = lines.dropped;
    now.rejected_lines = lines.rejected;
    now.waiting_lines = lines.waiting;
    now.requests += lines.requests;
    now.failed_requests += lines.failed_requests;
    return now;
  }

  bool flush(time_span at_most) {
    tasks::check_may_block("otlp::exporter::flush");
    const auto until = export_thread::deadline_in(at_most);
    const std::uint64_t spans = spans_->thread.begin_flush();
    if (lines_) {
      const std::uint64_t lines = lines_->thread.begin_flush();
      if (!lines_->thread.await_flush(lines, until)) return false;
    }
    return spans_->thread.await_flush(spans, until);
  }

 private:
  const exporter_options options_;
  const std::string resource_;
  std::optional<exported_kind<tasks::span_list, tasks::span_record>> spans_;
  std::optional<exported_kind<log::record_list, log::record>> lines_;
  std::optional<observe::number_source> shown_;  // the first to be destroyed
};

exporter::exporter(exporter_options options)
    : worker_(std::make_unique<worker>(std::move(options))) {}
exporter::~exporter() = default;
exporter_counts exporter::counts() const { return worker_->counts(); }
bool exporter::flush(time_span at_most) { return worker_->flush(at_most); }

}  // namespace troupe::otlp
