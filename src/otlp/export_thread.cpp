#include "otlp/export_thread.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "base/thread_name.hpp"
#include "observe/numbers/registry.hpp"
#include "otlp/encoding/metrics_body.hpp"
#include "runtime/environment.hpp"
#include "runtime/observing/observer.hpp"

namespace troupe::otlp {
namespace {

using namespace std::chrono_literals;

// A condition variable adds a span to the time, which must not overflow.
constexpr std::chrono::hours span_max{24 * 365 * 100};

}  // namespace

export_thread::deadline export_thread::deadline_in(std::chrono::nanoseconds span) noexcept {
  return std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(span, span_max);
}

export_thread::export_thread(const exporter_options& options, const std::string& resource,
                             const export_kind& kind, record_source& source)
    : options_(options), resource_(resource), kind_(kind), source_(source) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    source_.close();
    is_open_ = false;
    kind_.channel.failed(
        "no thread can be started, and no " + std::string(kind_.records) + " are recorded",
        failed.code().value());
  }
}

void export_thread::begin_to_end() noexcept {
  std::lock_guard lock(mutex_);
  if (stage_ != stage::runs) return;
  stage_ = stage::ends;
  half_end_ = deadline_in(half_flush_time());
  end_ = half_end_ + half_flush_time();
  wake();
}

export_thread::~export_thread() {
  finish();
  if (is_open_) source_.close();
}

void export_thread::finish() noexcept {
  if (!thread_.joinable()) return;
  begin_to_end();
  {
    std::unique_lock lock(mutex_);
    const auto is_done = [&] { return stage_ == stage::done; };
    if (!changed_.wait_until(lock, half_end_, is_done)) {
      // A collector of spans that is silent does not keep the last metrics waiting.
      if (has_metrics() && !sent_last_) cut_.request_stop();
      changed_.wait_until(lock, end_, is_done);
    }
  }
  cut_.request_stop();
  stop_.request_stop();
  thread_.join();
}

record_counts export_thread::counts() const noexcept {
  record_counts now;
  // order: relaxed (all)  statistics
  now.exported = exported_.load(std::memory_order_relaxed);
  now.dropped = dropped_.load(std::memory_order_relaxed) + source_.dropped();
  now.rejected = rejected_.load(std::memory_order_relaxed);
  now.waiting = source_.waiting();
  now.requests = requests_.load(std::memory_order_relaxed);
  now.failed_requests = failed_.load(std::memory_order_relaxed);
  return now;
}

std::uint64_t export_thread::begin_flush() {
  if (!thread_.joinable()) return 0;  // nothing waits
  std::lock_guard lock(mutex_);
  ++flushes_;
  wake();
  return source_.waiting() == 0 ? 0 : flushes_;
}

bool export_thread::await_flush(std::uint64_t goal, deadline until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [&] { return flushed_ >= goal; });
}

std::int64_t export_thread::metrics_pause_ns() const noexcept {
  return std::min<std::chrono::nanoseconds>(options_.metrics_interval, span_max).count();
}

std::chrono::nanoseconds export_thread::half_flush_time() const noexcept {
  return std::min<std::chrono::nanoseconds>(options_.flush_time, span_max) / 2;
}

void export_thread::run() noexcept {
  base::name_this_thread(kind_.thread_name);
  std::optional<runtime> by;
  std::optional<http::client> web;
  while (!begin(by, web) && !stops())
    pause(std::chrono::ceil<std::chrono::milliseconds>(
              std::chrono::nanoseconds(kind_.channel.next_try_ns() - base::now_ns())),
          flushes());
  web ? send_until_end(*by, *web) : drop_all();
  std::lock_guard lock(mutex_);
  TROUPE_INVARIANT(stage_ == stage::ends, "E1");
  stage_ = stage::done;
  changed_.notify_all();
}

// Returns false if it is to be tried again.
bool export_thread::begin(std::optional<runtime>& by, std::optional<http::client>& web) noexcept
    try {
  const own_service not_the_programs;
  if (!by) by.emplace(runtime_options{.workers = 1});
  web.emplace(client_options_of(options_));
  return true;
} catch (const std::exception& failed) {
  kind_.channel.failed(failed.what());
  return false;
}

std::chrono::nanoseconds export_thread::until_metrics() const noexcept {
  if (!has_metrics()) return span_max;
  return std::chrono::nanoseconds(std::max<std::int64_t>(metrics_due_ns_ - base::now_ns(), 0));
}

void export_thread::send_until_end(runtime& by, const http::client& web) noexcept {
  metrics_due_ns_ = base::now_ns() + metrics_pause_ns();
  for (;;) {
    // Spans that come from here on wake it again.
    const std::uint32_t seen = source_.wakes();
    const bool last = stops();
    send_due_metrics(by, web);
    send_all(by, web);
    if (last) break;
    source_.wait(seen, std::min<std::chrono::nanoseconds>(options_.interval, until_metrics()));
  }
  web.close_idle();
}

// With each interval, and once when the exporter ends: then before the spans that wait, and for
// half of the time at most, so that neither of two collectors takes the other one's time.
void export_thread::send_due_metrics(runtime& by, const http::client& web) noexcept {
  if (!has_metrics()) return;
  std::chrono::nanoseconds at_most = options_.request_time;
  {
    std::lock_guard lock(mutex_);
    const bool is_last = stage_ != stage::runs;
    if (is_last ? sent_last_ : until_metrics() > 0ns) return;
    if (is_last) at_most = std::min(at_most, half_flush_time());
    sent_last_ = is_last;
  }
  if (at_most > 0ns) send_metrics(by, web, at_most);
  metrics_due_ns_ = base::now_ns() + metrics_pause_ns();
}

void export_thread::end_round(std::uint64_t flushes) noexcept {
  std::lock_guard lock(mutex_);
  flushed_ = flushes;
  changed_.notify_all();
}

void export_thread::drop_all() noexcept {
  const std::uint64_t seen = flushes();
  source_.take_all();
  std::string body;
  // The bodies are not sent: batches of one record, so that none is large.
  while (const std::size_t count = source_.next(resource_, 1, body)) {
    dropped_.fetch_add(count, std::memory_order_relaxed);  // order: relaxed  a statistic
    source_.forget(count);
  }
  end_round(seen);
}

void export_thread::send_all(runtime& by, const http::client& web) noexcept {
  const std::uint64_t seen = flushes();
  source_.take_all();
  std::string body;
  while (const std::size_t count = source_.next(resource_, options_.batch, body)) {
    try {
      if (body.empty()) throw std::bad_alloc();
      send(by, web, body, count);
    } catch (const std::exception& failed) {  // memory is out
      kind_.channel.failed(failed.what());
      // order: relaxed  a statistic
      dropped_.fetch_add(count, std::memory_order_relaxed);
    }
    source_.forget(count);
    // Records that a collector does not take may keep this loop busy for minutes.
    send_due_metrics(by, web);
  }
  end_round(seen);
}

outcome export_thread::send_once(runtime& by, const http::client& web, http::client_request asked,
                                 std::string body, std::uint64_t count,
                                 std::chrono::nanoseconds at_most) {
  asked.body(std::move(body), "application/json");
  trace_context unrecorded = trace_context::begin();
  unrecorded.sampled = false;
  std::stop_token stop = (stops() ? stop_ : cut_).get_token();
  future<outcome> later =
      by.spawn(with_trace(unrecorded, post(web, std::move(asked), count, kind_.rejected_key,
                                           at_most, std::move(stop))));
  by.run();
  outcome result = later.get();
  // order: relaxed (both)  statistics
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (!result.taken) failed_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

// Once: sums that are lost now are in the next request.
void export_thread::send_metrics(runtime& by, const http::client& web,
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

void export_thread::send(runtime& by, const http::client& web, const std::string& body,
                         std::size_t count) {
  std::chrono::nanoseconds next_pause =
      std::min<std::chrono::nanoseconds>(options_.interval, span_max);
  for (int attempt = 1;; ++attempt) {
    outcome result;
    if (!stop_.stop_requested()) {
      result = send_once(by, web, request_of(kind_.url, kind_.fields), body, count,
                         options_.request_time);
    }
    // order: relaxed (all)  statistics
    if (result.taken) {
      kind_.channel.works();
      rejected_.fetch_add(result.rejected, std::memory_order_relaxed);
      exported_.fetch_add(count - result.rejected, std::memory_order_relaxed);
      return;
    }
    if (!stop_.stop_requested())
      kind_.channel.failed(kind_.url + ": " + result.why, 0,
                           std::string(kind_.records) + " that wait too long are dropped");
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
void export_thread::pause_before_next_try(runtime& by, const http::client& web,
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
bool export_thread::pause(std::chrono::nanoseconds span, std::uint64_t flushes) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, span,
                           [&] { return stage_ != stage::runs || flushes_ != flushes; });
}

}  // namespace troupe::otlp
