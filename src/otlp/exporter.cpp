// exporter: a thread that takes the spans that have ended, and sends them in batches, one request
// at a time, by a runtime of its own. So neither its work nor its waits are the program's, and no
// program stays alive for it.
#include "troupe/otlp/exporter.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/thread_name.hpp"
#include "observe/numbers/registry.hpp"
#include "otlp/encode.hpp"
#include "otlp/metrics.hpp"
#include "otlp/requests.hpp"
#include "runtime/environment.hpp"
#include "runtime/observing/observer.hpp"
#include "task/running/running.hpp"
#include "task/traces/spans.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/client.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::otlp {
namespace {

using namespace std::chrono_literals;
using tasks::ended_spans;

constexpr std::chrono::milliseconds pause_max = 30s;
// A condition variable adds a span to the time, which must not overflow.
constexpr std::chrono::hours span_max{24 * 365 * 100};
constexpr std::size_t answer_bytes_max = 64 * 1024;

struct outcome {
  outcome() noexcept {}
  bool taken = false;
  bool again = true;                      // it may be taken later
  std::uint64_t rejected = 0;             // of those in a batch that was taken
  std::chrono::milliseconds asks_for{0};  // the collector, as a pause
  std::string why;                        // it was not taken
};

bool may_be_taken_later(int status) noexcept {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// Retry-After in seconds; a date counts as none.
std::chrono::milliseconds pause_in(std::string_view field) noexcept {
  unsigned seconds = 0;
  const auto read = std::from_chars(field.data(), field.data() + field.size(), seconds);
  if (read.ec != std::errc() || read.ptr != field.data() + field.size()) return 0ms;
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), pause_max);
}

task<outcome> post(http::client web, http::client_request asked, std::uint64_t count,
                   time_span at_most, std::stop_token stop) {
  outcome result;
  try {
    http::client_response answer =
        co_await web.send(std::move(asked)).timeout(at_most).stop(std::move(stop));
    result.taken = answer.ok();
    result.again = may_be_taken_later(answer.status());
    result.asks_for = pause_in(answer.field("Retry-After"));
    if (!result.taken)
      result.why = "the collector answers with status " + std::to_string(answer.status());
    // What the answer says is of interest, but not needed.
    const std::string text = co_await answer.read_all();
    result.rejected = rejected_in(text, count);
  } catch (const std::exception& failed) {
    if (!result.taken && result.why.empty()) result.why = failed.what();
  }
  co_return result;
}

http::client_options client_options_of(const exporter_options& chosen) {
  http::client_options options;
  options.tls = chosen.tls;
  options.body_bytes = answer_bytes_max;
  options.redirects = 0;
  options.user_agent = "troupe-otlp";
  return options;
}

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
}

}  // namespace

namespace {

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
     counter_of<&exporter_counts::requests>("requests", "Requests to the collector."),
     shows(observe::trouble::exporter_unavailable,
           counter_of<&exporter_counts::failed_requests>(
               "failed_requests", "Requests to the collector that failed."))}};

}  // namespace

class exporter::worker {
 public:
  explicit worker(exporter_options chosen)
      : options_(std::move(chosen)), resource_(resource_of(options_)) {
    check(options_);
    if (!ended_spans.open(options_.spans, std::min(options_.batch, options_.spans), options_.rate,
                          options_.parent_based))
      throw usage_error("troupe: otlp::exporter: there is one already: it has all spans");
    const auto read = [this](observe::row_sink& sink, const std::string&) {
      sink.add(exporter_numbers, {}, counts());
    };
    shown_.emplace(exporter_numbers, "", read);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& failed) {
      ended_spans.close();
      span_export.failed("no thread can be started, and no spans are recorded",
                         failed.code().value());
    }
  }

  ~worker() {
    if (!thread_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      wake(lock);
      const std::chrono::nanoseconds half = half_flush_time();
      const auto is_done = [&] { return done_; };
      if (!changed_.wait_for(lock, half, is_done)) {
        // A collector of spans that is silent does not keep the last metrics waiting.
        if (!options_.metrics_url.empty() && !sent_last_) cut_.request_stop();
        changed_.wait_for(lock, half, is_done);
      }
    }
    cut_.request_stop();
    stop_.request_stop();
    thread_.join();
    ended_spans.close();
  }

  exporter_counts counts() const noexcept {
    exporter_counts now;
    // order: relaxed (all)  statistics
    now.exported = exported_.load(std::memory_order_relaxed);
    now.dropped = dropped_.load(std::memory_order_relaxed) + ended_spans.dropped();
    now.rejected = rejected_.load(std::memory_order_relaxed);
    now.waiting = ended_spans.waiting();
    now.requests = requests_.load(std::memory_order_relaxed);
    now.failed_requests = failed_.load(std::memory_order_relaxed);
    return now;
  }

  bool flush(time_span at_most) {
    tasks::check_may_block("otlp::exporter::flush");
    if (!thread_.joinable()) return true;  // nothing waits
    std::unique_lock lock(mutex_);
    ++flushes_;
    wake(lock);
    const std::uint64_t goal = gone_ + ended_spans.waiting();
    return changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(at_most, span_max),
                             [&] { return gone_ >= goal; });
  }

 private:
  using unique_lock = std::unique_lock<std::mutex>;
  void run() noexcept;
  bool begin(std::optional<runtime>& by, std::optional<http::client>& web) noexcept;
  void send_until_end(runtime& by, const http::client& web) noexcept;
  void drop_all() noexcept;
  void send_all(runtime& by, const http::client& web) noexcept;
  void send(runtime& by, const http::client& web, tasks::span_record* first, std::size_t count);
  outcome send_once(runtime& by, const http::client& web, http::client_request asked,
                    std::string body, std::uint64_t count, std::chrono::nanoseconds at_most);
  void send_due_metrics(runtime& by, const http::client& web) noexcept;
  void send_metrics(runtime& by, const http::client& web,
                    std::chrono::nanoseconds at_most) noexcept;
  std::chrono::nanoseconds until_metrics() const noexcept;
  std::int64_t metrics_pause_ns() const noexcept {
    return std::min<std::chrono::nanoseconds>(options_.metrics_interval, span_max).count();
  }
  std::chrono::nanoseconds half_flush_time() const noexcept {
    return std::min<std::chrono::nanoseconds>(options_.flush_time, span_max) / 2;
  }
  void pause_before_next_try(runtime& by, const http::client& web, std::chrono::nanoseconds span);
  bool pause(std::chrono::nanoseconds span, std::uint64_t flushes);
  std::uint64_t flushes() {
    std::lock_guard lock(mutex_);
    return flushes_;
  }
  void wake(unique_lock&) noexcept {
    changed_.notify_all();
    ended_spans.wake();
  }
  bool stops() {
    std::lock_guard lock(mutex_);
    return stopping_;
  }

  const exporter_options options_;
  const std::string resource_;
  std::atomic<std::uint64_t> exported_{0}, dropped_{0}, rejected_{0}, requests_{0}, failed_{0};
  std::stop_source cut_, stop_;  // of requests that began before the end, and of all
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, done_ = false;
  bool sent_last_ = false;  // the metrics, when the exporter ended
  std::uint64_t flushes_ = 0;
  std::uint64_t gone_ = 0;  // spans that were sent, or given up
  const std::int64_t began_unix_ns_ = tasks::wall_now_ns();
  std::int64_t metrics_due_ns_ = 0;  // the thread's own
  std::thread thread_;
  std::optional<observe::number_source> shown_;  // the first to be destroyed
};

void exporter::worker::run() noexcept {
  base::name_this_thread("otlp");
  std::optional<runtime> by;
  std::optional<http::client> web;
  while (!begin(by, web) && !stops())
    pause(std::chrono::ceil<std::chrono::milliseconds>(
              std::chrono::nanoseconds(span_export.next_try_ns() - base::now_ns())),
          flushes());
  web ? send_until_end(*by, *web) : drop_all();
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

// Returns false if it is to be tried again.
bool exporter::worker::begin(std::optional<runtime>& by, std::optional<http::client>& web) noexcept
    try {
  const own_service not_the_programs;
  if (!by) by.emplace(runtime_options{.workers = 1});
  web.emplace(client_options_of(options_));
  return true;
} catch (const std::exception& failed) {
  span_export.failed(failed.what());
  return false;
}

std::chrono::nanoseconds exporter::worker::until_metrics() const noexcept {
  if (options_.metrics_url.empty()) return span_max;
  return std::chrono::nanoseconds(std::max<std::int64_t>(metrics_due_ns_ - base::now_ns(), 0));
}

void exporter::worker::send_until_end(runtime& by, const http::client& web) noexcept {
  metrics_due_ns_ = base::now_ns() + metrics_pause_ns();
  for (;;) {
    // What comes from here on wakes it again.
    const std::uint32_t seen = ended_spans.wakes();
    const bool last = stops();
    send_due_metrics(by, web);
    send_all(by, web);
    if (last) break;
    ended_spans.wait(seen, std::min<std::chrono::nanoseconds>(options_.interval, until_metrics()));
  }
  web.close_idle();
}

// With each interval, and once when the exporter ends: then before the spans that wait, and for
// half of the time at most, so that neither of two collectors takes the other one's time.
void exporter::worker::send_due_metrics(runtime& by, const http::client& web) noexcept {
  if (options_.metrics_url.empty()) return;
  std::chrono::nanoseconds at_most = options_.request_time;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ ? sent_last_ : until_metrics() > 0ns) return;
    if (stopping_) at_most = std::min(at_most, half_flush_time());
    sent_last_ = stopping_;
  }
  if (at_most > 0ns) send_metrics(by, web, at_most);
  metrics_due_ns_ = base::now_ns() + metrics_pause_ns();
}

void exporter::worker::drop_all() noexcept {
  std::size_t count = 0;
  for (tasks::span_record* span = ended_spans.take_all(); span != nullptr; ++count) {
    const tasks::span_ptr gone(span);
    span = span->next;
  }
  dropped_.fetch_add(count, std::memory_order_relaxed);  // order: relaxed  a statistic
  ended_spans.forget(count);
}

void exporter::worker::send_all(runtime& by, const http::client& web) noexcept {
  tasks::span_record* all = ended_spans.take_all();
  while (all != nullptr) {
    tasks::span_record* const first = all;
    tasks::span_record* last = first;
    std::size_t count = 1;
    for (; count < options_.batch && last->next != nullptr; ++count) last = last->next;
    all = std::exchange(last->next, nullptr);
    try {
      send(by, web, first, count);
    } catch (const std::exception& failed) {  // memory is out
      span_export.failed(failed.what());
      // order: relaxed  a statistic
      dropped_.fetch_add(count, std::memory_order_relaxed);
    }
    for (tasks::span_record* span = first; span != nullptr;) {
      const tasks::span_ptr gone(span);
      span = span->next;
    }
    {
      std::lock_guard lock(mutex_);
      ended_spans.forget(count);
      gone_ += count;
      changed_.notify_all();
    }
    // Spans that a collector does not take may keep this loop busy for minutes.
    send_due_metrics(by, web);
  }
}

outcome exporter::worker::send_once(runtime& by, const http::client& web,
                                    http::client_request asked, std::string body,
                                    std::uint64_t count, std::chrono::nanoseconds at_most) {
  asked.body(std::move(body), "application/json");
  trace_context unrecorded = trace_context::begin();
  unrecorded.sampled = false;
  std::stop_token stop = (stops() ? stop_ : cut_).get_token();
  future<outcome> later = by.spawn(
      with_trace(unrecorded, post(web, std::move(asked), count, at_most, std::move(stop))));
  by.run();
  outcome result = later.get();
  // order: relaxed (both)  statistics
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (!result.taken) failed_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

// Once: sums that are lost now are in the next request.
void exporter::worker::send_metrics(runtime& by, const http::client& web,
                                    std::chrono::nanoseconds at_most) noexcept try {
  if (stop_.stop_requested()) return;
  observe::number_tables all;
  observing::collect_all(all);
  const outcome result =
      send_once(by, web, request_of(options_.metrics_url, options_.metrics_fields),
                metrics_body(resource_, all, began_unix_ns_, tasks::wall_now_ns()), 0, at_most);
  if (result.taken) return metrics_export.works();
  if (!stop_.stop_requested())
    metrics_export.failed(options_.metrics_url + ": " + result.why, 0,
                          "the next request has all sums so far");
} catch (const std::exception& failed) {  // memory is out
  metrics_export.failed(failed.what());
}

void exporter::worker::send(runtime& by, const http::client& web, tasks::span_record* first,
                            std::size_t count) {
  const std::string body = body_of(resource_, first);
  std::chrono::nanoseconds next_pause =
      std::min<std::chrono::nanoseconds>(options_.interval, span_max);
  for (int attempt = 1;; ++attempt) {
    outcome result;
    if (!stop_.stop_requested()) {
      result = send_once(by, web, request_of(options_.url, options_.fields), body, count,
                         options_.request_time);
    }
    // order: relaxed (all)  statistics
    if (result.taken) {
      span_export.works();
      rejected_.fetch_add(result.rejected, std::memory_order_relaxed);
      exported_.fetch_add(count - result.rejected, std::memory_order_relaxed);
      return;
    }
    if (!stop_.stop_requested())
      span_export.failed(options_.url + ": " + result.why, 0,
                         "spans that wait too long are dropped");
    if (!result.again) {
      // order: relaxed  as above
      rejected_.fetch_add(count, std::memory_order_relaxed);
      return;
    }
    if (attempt >= options_.attempts || stop_.stop_requested()) {
      // order: relaxed  as above
      dropped_.fetch_add(count, std::memory_order_relaxed);
      return;
    }
    pause_before_next_try(by, web, result.asks_for > 0ms ? result.asks_for : next_pause);
    next_pause = std::min<std::chrono::nanoseconds>(2 * next_pause, pause_max);
  }
}

// As pause(); the metrics that come due in it are sent.
void exporter::worker::pause_before_next_try(runtime& by, const http::client& web,
                                             std::chrono::nanoseconds span) {
  const std::uint64_t seen = flushes();
  const std::int64_t until_ns = base::now_ns() + span.count();
  for (bool goes_on = true; goes_on;) {
    const std::chrono::nanoseconds left(until_ns - base::now_ns());
    goes_on = !pause(std::min(left, until_metrics()), seen) && base::now_ns() < until_ns;
    send_due_metrics(by, web);
  }
}

// Until the time is over, or the exporter ends or is flushed once more: then it returns true.
bool exporter::worker::pause(std::chrono::nanoseconds span, std::uint64_t flushes) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, span, [&] { return stopping_ || flushes_ != flushes; });
}

exporter::exporter(exporter_options options)
    : worker_(std::make_unique<worker>(std::move(options))) {}
exporter::~exporter() = default;
exporter_counts exporter::counts() const { return worker_->counts(); }
bool exporter::flush(time_span at_most) { return worker_->flush(at_most); }

}  // namespace troupe::otlp
