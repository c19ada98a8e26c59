// job: a piece of work that is run once, by any thread, and that any number of others may wait for.
// The library's own; users meet lazy.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "troupe/task/future.hpp"

namespace troupe::jobs {

class frame;
class job_queue;
struct waiting_thread;

// Who is told, once, on the thread that ran the job.
struct waiter {
  explicit waiter(void (*tell)(waiter&) noexcept) noexcept : wake(tell) {}
  waiter* next = nullptr;
  void (*const wake)(waiter&) noexcept;
};

struct job {
  // cancel: its result is the exception `cancelled`. report: nobody will hear of its exception, if
  // it has one. forget: nor want its result.
  enum class act : std::uint8_t { run, cancel, report, forget, free };

  job(void (*acts)(job&, act) noexcept, const char* what, bool for_another = false) noexcept
      : is_proxy_job(for_another), perform(acts), name(what) {}
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  // order: acquire  sees the result; pairs with the exchange that ends the job
  bool is_done() const noexcept { return word.load(std::memory_order_acquire) == done; }
  // Of a handle.
  // order: relaxed  the caller has one already
  void add_ref() noexcept { refs.fetch_add(2, std::memory_order_relaxed); }
  void drop_ref() noexcept;
  // Of where it was kept.
  void drop_kept() noexcept;

  static constexpr std::uintptr_t done = 1;
  std::atomic<std::uintptr_t> word{0};  // the waiters, newest first; then done
  // its maker's, and where it is kept until somebody takes it (job_refs.hpp)
  std::atomic<std::uint32_t> refs{3};
  std::atomic<bool> claimed{false};  // somebody runs it, or has
  // past the limit it is begun by who wants it only (resource.hpp); before it is kept anywhere
  std::atomic<bool> needs_memory{false};
  const bool is_proxy_job;  // it runs another one, which counts then; it does not
  void (*const perform)(job&, act) noexcept;
  const char* const name;
  // Its maker's list of what it has not submitted, or the queue of the one that has submitted it.
  std::atomic<const void*> kept_by{nullptr};
  job* older = nullptr;
  job* newer = nullptr;
  std::uint64_t position = 0;      // in the list by age, in the queue by index
  const frame* made_in = nullptr;  // its maker's innermost job or work then, which may have gone
  std::atomic<waiting_thread*> run_by{nullptr};
  // of the outermost job of a thread: who waits for it may help (docs/protocols/lazies.md)
  std::atomic<job_queue*> queues_in{nullptr};
};

// An exception that nobody will hear of otherwise: a failure of the runtime that the calling
// thread's jobs belong to. Ends the program where there is none.
void report_unheard(const job& of, const std::exception_ptr& what) noexcept;

// Keeps a new job with what the calling thread has pending; takes one of its two refs.
void keep(job& made) noexcept;

// Submits all that the calling thread has pending, and returns when `of` is done: it runs here if
// nobody has begun it. Throws deadlock when it would wait for itself; usage_error in an actor's
// handler.
void need(job& of);

// Submits the same, and tells when `of` is done. Throws std::bad_alloc.
future<> when_done(job& of);

// The jobs that the calling thread keeps pending from now on, until the scope's end (lazy.hpp).
class pending_scope {
 public:
  explicit pending_scope(bool runs);  // throws usage_error in a coroutine
  pending_scope(const pending_scope&) = delete;
  pending_scope& operator=(const pending_scope&) = delete;
  ~pending_scope();
  // Of a job that was made in it, or before it: whether the innermost scope around that runs what
  // nobody wants.
  bool runs(const job& one) const noexcept;

 private:
  const frame* const in_;  // what the jobs and works that run in it make is theirs
  const pending_scope* const outer_;
  const std::uint64_t began_;
  const bool runs_;
};

}  // namespace troupe::jobs
