// export_thread: a thread that takes the records of one kind, and sends them in batches, one
// request at a time, by a runtime of its own. Therefore neither its work nor its waits are the
// program's, and no program stays alive for it. Each kind has a thread, so that a collector that
// does not answer delays no records of another kind; metrics, which are seldom, go with the spans.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "otlp/record_source.hpp"
#include "otlp/requests.hpp"
#include "task/running/running.hpp"
#include "troupe/http/client.hpp"
#include "troupe/otlp/options.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::otlp {

// The records that a thread sends, their collector, and the channel of its failures.
struct export_kind {
  const char* thread_name;
  std::string_view records;       // a plural noun
  std::string_view rejected_key;  // of the collector's answer
  const std::string& url;
  const request_fields& fields;
  base::side_channel& channel;
  bool has_metrics;  // which go to options.metrics_url
};

// Counts of records so far, by outcome, and of requests.
struct record_counts {
  std::uint64_t exported = 0, dropped = 0, rejected = 0, waiting = 0;
  std::uint64_t requests = 0, failed_requests = 0;
};

// Thread: any. The options and the source must live longer.
// Invariants
//   E1  The thread is done only after it was asked to end.
class export_thread {
 public:
  using deadline = std::chrono::steady_clock::time_point;
  // At this time from now, which is far away if the span is.
  static deadline deadline_in(std::chrono::nanoseconds span) noexcept;

  export_thread(const exporter_options& options, const std::string& resource,
                const export_kind& kind, record_source& source);
  export_thread(const export_thread&) = delete;
  export_thread& operator=(const export_thread&) = delete;
  // Calls finish(), and closes the source.
  ~export_thread();
  // Lets the thread send the waiting records, and end. Does not wait for it.
  void begin_to_end() noexcept;
  // Waits until all is sent, for at most flush_time since begin_to_end(), and ends the thread.
  void finish() noexcept;

  record_counts counts() const noexcept;
  // Lets the thread send the records that wait now. The result is for await_flush(), which returns
  // whether all of it was sent or given up by that time.
  std::uint64_t begin_flush();
  bool await_flush(std::uint64_t goal, deadline until);

 private:
  // `ends`: it sends the records that wait, and the last metrics.
  enum class stage : std::uint8_t { runs, ends, done };
  void run() noexcept;
  bool begin(std::optional<runtime>& by, std::optional<http::client>& web) noexcept;
  void send_until_end(runtime& by, const http::client& web) noexcept;
  void drop_all() noexcept;
  // The records that were there at the first so many flushes are sent, or given up.
  void end_round(std::uint64_t flushes) noexcept;
  void send_all(runtime& by, const http::client& web) noexcept;
  void send(runtime& by, const http::client& web, const std::string& body, std::size_t count);
  outcome send_once(runtime& by, const http::client& web, http::client_request asked,
                    std::string body, std::uint64_t count, std::chrono::nanoseconds at_most);
  bool has_metrics() const noexcept { return kind_.has_metrics && !options_.metrics_url.empty(); }
  void send_due_metrics(runtime& by, const http::client& web) noexcept;
  void send_metrics(runtime& by, const http::client& web,
                    std::chrono::nanoseconds at_most) noexcept;
  std::chrono::nanoseconds until_metrics() const noexcept;
  std::int64_t metrics_pause_ns() const noexcept;
  std::chrono::nanoseconds half_flush_time() const noexcept;
  void pause_before_next_try(runtime& by, const http::client& web, std::chrono::nanoseconds span);
  bool pause(std::chrono::nanoseconds span, std::uint64_t flushes);
  std::uint64_t flushes() {
    std::lock_guard lock(mutex_);
    return flushes_;
  }
  // Under the mutex.
  void wake() noexcept {
    changed_.notify_all();
    source_.wake();
  }
  bool stops() {
    std::lock_guard lock(mutex_);
    return stage_ != stage::runs;
  }

  const exporter_options& options_;
  const std::string& resource_;
  const export_kind kind_;
  record_source& source_;
  std::atomic<std::uint64_t> exported_{0}, dropped_{0}, rejected_{0}, requests_{0}, failed_{0};
  std::stop_source cut_, stop_;  // of requests that began before the end, and of all
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;  // the source; only the constructor changes it
  stage stage_ = stage::runs;
  bool sent_last_ = false;  // the metrics, when the exporter ended
  deadline half_end_, end_;
  std::uint64_t flushes_ = 0;
  // The flushes of which all records were sent, or given up: a round of sending began after them.
  std::uint64_t flushed_ = 0;
  const std::int64_t began_unix_ns_ = tasks::wall_now_ns();
  std::int64_t metrics_due_ns_ = 0;  // the thread's own
  std::thread thread_;
};

}  // namespace troupe::otlp
