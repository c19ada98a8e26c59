// request_counts: the requests of one server by route, method, class of the status and time.
//
// Threads: any. A slot is written once, and read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "observe/numbers/sharded.hpp"
#include "observe/numbers/thread_shard.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/router.hpp"

namespace troupe::http {

// Requests that were answered alike.
struct request_series {
  const router::route* route;  // null: no route, or a path that is malformed
  method by;
  int status_class;  // 1 to 5; 0: the request ended without an answer
  observe::sharded_histogram took;
};

class request_counts {
 public:
  // Beyond so many series requests are counted in a common one, whose labels are all "(others)".
  static constexpr std::size_t series_max = 512;

  request_counts() = default;
  request_counts(const request_counts&) = delete;
  request_counts& operator=(const request_counts&) = delete;
  ~request_counts();

  void begin() noexcept;
  // `last`: the series of the connection's last request, or null; it becomes this request's.
  void end(const router::route* route, method by, int status, double seconds,
           request_series*& last) noexcept;

  std::uint64_t in_flight() const noexcept;
  // Calls `look` with each series.
  template <class Look>
  void for_each(Look look) const {
    // order: acquire  pairs with find/release: the series is complete
    for (const auto& slot : slots_) {
      if (const request_series* const series = slot.load(std::memory_order_acquire)) look(*series);
    }
  }
  // Null, unless there were too many.
  const observe::sharded_histogram* others() const noexcept;

 private:
  // Null when there are too many, or when memory has run out.
  request_series* find(const router::route* route, method by, int status_class) noexcept;
  request_series* find_or_make(const router::route* route, method by, int status_class,
                               std::size_t first) noexcept;

  static constexpr std::size_t slot_count = 2 * series_max;
  std::array<std::atomic<request_series*>, slot_count> slots_{};
  std::atomic<std::size_t> used_{0};
  std::unique_ptr<observe::sharded_histogram> others_ = make_others();
  // Those that ended are all that the series count.
  struct alignas(observe::cache_line_bytes) begun_here {
    std::atomic<std::uint64_t> requests{0};
  };
  observe::sharded<begun_here> begun_;

  static std::unique_ptr<observe::sharded_histogram> make_others();
};

// One request, in flight from its head to the end of its answer. Its time ends with the head of the
// answer: a stream of events, or a client that reads slowly, makes no route slow.
class counted_request {
 public:
  counted_request() = default;
  counted_request(const counted_request&) = delete;
  counted_request& operator=(const counted_request&) = delete;
  // The connection has ended under it.
  ~counted_request() {
    if (is_counted()) [[unlikely]]
      end();
  }

  bool is_counted() const noexcept { return is_counted_; }
  void begin(request_counts& counts, const router::route* route, method by) noexcept;
  void note_status(int status) noexcept;
  void end() noexcept;
  // When its answer began, by base::now_ns(); 0: it has none.
  std::int64_t answered_ns() const noexcept { return answered_ns_; }

 private:
  bool is_counted_ = false;
  request_counts* counts_ = nullptr;
  request_series* last_ = nullptr;  // in `counts_`
  const router::route* route_ = nullptr;
  method by_ = method::other;
  int status_ = 0;
  std::int64_t began_ns_ = 0, answered_ns_ = 0;  // 0: not answered
};

}  // namespace troupe::http
