// lazy_counts: how many lazies of each class, which is the type of their function, a runtime has
// computed, while it is observed. Counts are exact; times come from samples.
#pragma once

#include <atomic>
#include <cstdint>

#include "observe/counting/by_thread.hpp"
#include "observe/counting/histogram.hpp"
#include "observe/sample_stride.hpp"

namespace troupe::jobs {

struct job;

// The counts of one class of lazies by one thread.
struct lazy_count {
  explicit lazy_count(const char* lazy_name) noexcept : name(lazy_name) {}
  const char* const name;
  observe::counter computed;
  observe::counter stolen;        // computed lazies that came from the queue of another thread
  observe::sample_stride stride;  // of those that are timed
  observe::counter samples, busy_ticks;
  observe::histogram took;  // ticks, including the lazies that it computes in turn
  lazy_count* next = nullptr;
};

class thread_lazies {
 public:
  thread_lazies() = default;
  thread_lazies(const thread_lazies&) = delete;
  thread_lazies& operator=(const thread_lazies&) = delete;
  ~thread_lazies();

  // The thread's own. Names are compared as pointers. Null when memory has run out.
  lazy_count* of(const char* name) noexcept;
  // Thread: any.
  template <class Look>
  void for_each_class(Look look) const {
    // order: acquire  sees the complete element; pairs with of/release
    for (const lazy_count* lazy = first_.load(std::memory_order_acquire); lazy; lazy = lazy->next)
      look(*lazy);
  }

  bool next_is_stolen = false;  // the thread's own

 private:
  lazy_count* recent_ = nullptr;
  std::atomic<lazy_count*> first_{nullptr};
};

// Thread: any.
class lazy_counts : public observe::by_thread<thread_lazies> {
 public:
  // Whether the lazy that the calling thread computes next is stolen.
  void set_stolen(bool yes) noexcept;
};

// One run of a job, from construction to destruction. `counts` may be null: then it does nothing.
class counted_run {
 public:
  counted_run(lazy_counts* counts, const job& job) noexcept;
  counted_run(const counted_run&) = delete;
  counted_run& operator=(const counted_run&) = delete;
  ~counted_run();

 private:
  lazy_count* lazy_ = nullptr;
  std::uint64_t began_ = 0;  // 0: no sample
};

}  // namespace troupe::jobs
