// job: a piece of work that runs once, on any thread, and that any number of threads and coroutines
// may wait for. For the library's own use; users meet lazy.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>
#include <exception>

#include "troupe/base/intrusive_list.hpp"
#include "troupe/task/future.hpp"

namespace troupe::jobs {

class frame;
class job_queue;
struct waiting_thread;

// A party that is notified of the job's end, once, on the thread that ran the job.
struct waiter {
  explicit waiter(void (*tell)(waiter&) noexcept) noexcept : wake(tell) {}
  waiter* next = nullptr;
  void (*const wake)(waiter&) noexcept;
};

// A counted job. Thread: any.
struct job {
  // cancel: makes the exception `cancelled` the result. report: no thread can get the job's
  // exception any more, if any. forget: no thread can get its result either.
  enum class act : std::uint8_t { run, cancel, report, forget, free };

  job(void (*acts)(job&, act) noexcept, const char* job_name, std::uint32_t made_at,
      bool for_another = false) noexcept
      : is_proxy_job(for_another), line(made_at), perform(acts), name(job_name) {}
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  // order: acquire  sees the result; pairs with the exchange that ends the job
  bool is_done() const noexcept { return word.load(std::memory_order_acquire) == done; }
  // Adds a handle.
  // order: relaxed  the caller already holds a reference
  void add_ref() noexcept { refs.fetch_add(2, std::memory_order_relaxed); }
  void drop_ref() noexcept;
  // Drops the reference of the list or queue that kept the job.
  void drop_kept() noexcept;

  static constexpr std::uintptr_t done = 1;
  std::atomic<std::uintptr_t> word{0};  // the waiters, newest first; `done` at the end
  // the maker's reference, and the reference of the list or queue that keeps the job until a thread
  // takes it (job_refs.hpp)
  std::atomic<std::uint32_t> refs{3};
  std::atomic<bool> claimed{false};  // a thread runs it, or has run it
  // a coroutine has awaited it: its exception, if no caller can get it any more, is a dropped
  // error, and no failure of the runtime
  std::atomic<bool> awaited{false};
  // above the memory limit only a thread that needs the job begins it (resource.hpp); set before
  // the job is kept anywhere
  std::atomic<bool> needs_memory{false};
  const bool is_proxy_job;               // it runs another job, which is counted; this one is not
  std::atomic<std::uint32_t> number{0};  // in a trace; 0 until its first event (trace_job.hpp)
  const std::uint32_t line;              // of the code that made it
  void (*const perform)(job&, act) noexcept;
  const char* const name;
  // The list in which the maker keeps the jobs that it has not submitted, or the queue of the
  // thread that has submitted them.
  std::atomic<const void*> kept_by{nullptr};
  base::list_link<job> link;   // in that list
  std::uint64_t position = 0;  // in the list by age, in the queue by index
  // the innermost job or work of its maker at that time, which may no longer exist
  const frame* made_in = nullptr;
  std::atomic<waiting_thread*> run_by{nullptr};
  // for the outermost job of a thread: a thread that waits for it may help
  // (docs/protocols/lazies.md)
  std::atomic<job_queue*> queues_in{nullptr};
};

// Reports an exception that no thread can get: a failure of the runtime to which the calling
// thread's jobs belong. Ends the program if there is no runtime.
void report_unheard(const job& failed, const std::exception_ptr& failure) noexcept;

// Puts a new job among the pending jobs of the calling thread; takes over one of its two
// references.
void keep(job& kept) noexcept;

// Submits all pending jobs of the calling thread, and returns when `wanted` is done. If no thread
// has begun `wanted`, it runs here. Throws deadlock if `wanted` would wait for itself; usage_error
// in an actor's handler.
void need(job& wanted);

// Submits the same jobs, and returns a future that is ready when `wanted` is done. Throws
// std::bad_alloc.
future<> when_done(job& wanted);

// Covers the jobs that the calling thread makes pending from now on, until the scope's end
// (lazy.hpp).
class pending_scope {
 public:
  explicit pending_scope(bool runs);  // throws usage_error in a coroutine
  pending_scope(const pending_scope&) = delete;
  pending_scope& operator=(const pending_scope&) = delete;
  ~pending_scope();
  // For a job that was made in this scope, or before it: whether the innermost scope around the job
  // runs unwanted jobs.
  bool runs(const job& job) const noexcept;

 private:
  // jobs made by jobs and works that run inside it do not belong to the scope
  const frame* const frame_;
  const pending_scope* const outer_;
  const std::uint64_t began_;
  const bool runs_;
};

}  // namespace troupe::jobs
