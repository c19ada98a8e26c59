// How a thread handles the jobs that it makes, and the jobs that it needs.
#include "troupe/jobs/job.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "jobs/lazies/job_refs.hpp"
#include "jobs/lazies/pending_list.hpp"
#include "jobs/pool/job_pool.hpp"
#include "jobs/pool/run.hpp"
#include "jobs/waits/trace_job.hpp"
#include "jobs/waits/waiting_threads.hpp"
#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::jobs {
namespace {

using refs_of_job = job_refs<std::atomic<std::uint32_t>>;

constinit thread_local pending_list pending [[gnu::tls_model("initial-exec")]];

struct pending_cleaner {
  bool armed = false;
  ~pending_cleaner() { pending.drop(0, nullptr); }
};
thread_local pending_cleaner cleaner;

// Jobs that need jobs nest on the stack up to this depth; then a fresh thread runs the next one.
constexpr std::ptrdiff_t stack_max = 1 << 20;  // bytes

// False when no thread can be started.
bool run_on_fresh_thread(job& item) {
  const waits_for it(item, waits_for::joins{});  // first, so that the other thread finds a cycle
  try {
    std::thread([&item, pool = job_pool::current()] {
      const job_pool::inside entered(pool);
      run(item);
      if (pool != nullptr) pool->leave_queue();
    }).join();
    return true;
  } catch (...) {
    return false;
  }
}

// Names the job in the report of a deadline that passes, if it is the first job that the posted
// procedure, or the thread's other work, needs.
struct named_in_procedure {
  explicit named_in_procedure(const job& job) noexcept {
    // order: relaxed  for running_handlers, a snapshot
    if (first) name.store(job.name, std::memory_order_relaxed);
  }
  named_in_procedure(const named_in_procedure&) = delete;
  named_in_procedure& operator=(const named_in_procedure&) = delete;
  ~named_in_procedure() {
    if (first) name.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as above
  }
  std::atomic<const char*>& name = tasks::running_here().name;
  // order: relaxed  the thread's own
  const bool first = name.load(std::memory_order_relaxed) == nullptr;
};

// Runs the job here; or, when this stack is used up, on a fresh thread, and waits for that.
void run_nested(job& item) {
  // Not the address of a local variable: sanitizers put those elsewhere.
  const auto* const stack_position = static_cast<const std::byte*>(__builtin_frame_address(0));
  if (pending.stack_top == nullptr) {
    pending.stack_top = stack_position;
    const named_in_procedure named(item);
    run(item);
    pending.stack_top = nullptr;
    return;
  }
  const std::ptrdiff_t used = pending.stack_top - stack_position;
  if (used < stack_max && used > -stack_max) return run(item);
  if (!run_on_fresh_thread(item)) run(item);  // no thread: continue as deep as this stack allows
}

// Takes the ref that kept the job.
void run_unshared(job& job, job_pool* pool) {
  if (claim(job)) {
    if (pool != nullptr) pool->count_run();
    run_nested(job);
  }
  job.drop_kept();
}

// False when memory is out.
bool submit_unwanted(job_pool& pool, job& item) noexcept try {
  return pool.submit(item, pool.queue_here(), true);
} catch (const std::bad_alloc&) {
  return false;
}

// Drops the job if no thread needs it or can ever need it, or if another thread has begun it.
// False: the job must be submitted.
bool drop_if_over(job_pool* pool, job& job) {
  // order: relaxed  a hint: another thread has begun it
  const bool claimed = job.claimed.load(std::memory_order_relaxed);
  if (!claimed &&
      (!pending_list::is_orphan(job) || (pending.scope != nullptr && pending.scope->runs(job))))
    return false;
  pending.remove(job);
  if (!claimed && pool != nullptr) pool->count_dropped();
  job.drop_kept();
  return true;
}

// For a thread that makes lazies for others and needs none itself: drops the jobs that other
// threads have run or no longer need. Called whenever the thread has made as many jobs as were left
// after the last sweep, at least sweep_after_min.
TROUPE_NOINLINE void sweep_pending() noexcept {
  constexpr std::uint64_t sweep_after_min = 1'000;
  pending.sweep_at = ~std::uint64_t{0};  // a dropped job's destructor may make others
  std::uint64_t left = 0;
  for (job* at = pending.jobs.last(); at != nullptr;) {
    job& item = *std::exchange(at, pending_list::list::previous(*at));
    const std::uint32_t before = pending.removed;
    if (!drop_if_over(job_pool::current(), item)) ++left;
    // the list has changed, as in submit_pending
    if (pending.removed - before > 1) at = pending.jobs.last(), left = 0;
  }
  pending.sweep_at = pending.jobs_made + std::max(left, sweep_after_min);
}

// Submits or drops one job. False when there is no room.
bool submit_one(job_pool& pool, job_queue& mine, job& item) {
  if (drop_if_over(&pool, item)) return true;
  pending.remove(item);
  return pool.submit(item, mine);
}

// Submits all pending jobs except the wanted one. Thieves take first the jobs that were submitted
// first: the job that this thread will need last must therefore come first. A thread that needs the
// newest of its jobs will need older ones next (of nested lazies the oldest is the largest); a
// thread that needs another job will need the rest from the oldest on. Jobs for which the queue has
// no room stay pending, and run in the thread that needs them: never here, on top of a job that may
// need them. A dropped job may hold something whose destructor needs lazies: then the list has
// changed, and this starts again.
void submit_pending(job_pool& pool, const job* wanted) {
  using list = pending_list::list;
  job_queue& mine = pool.queue_here();
  const bool oldest_first = pending.jobs.last() == wanted && wanted != nullptr;
  // Drop orphans first: a job that only unwanted jobs hold is older than they are. Skipped when
  // there are more jobs than the queue has room for, since it would then happen each time.
  for (job* at = oldest_first && pool.has_room(mine) ? list::previous(*wanted) : nullptr;
       at != nullptr;) {
    job& item = *std::exchange(at, list::previous(*at));
    const std::uint32_t before = pending.removed;
    drop_if_over(&pool, item);
    if (pending.removed - before > 1) at = pending.jobs.last();
  }
  for (job* at = oldest_first ? pending.jobs.first() : pending.jobs.last(); at != nullptr;) {
    job& item = *at;
    job* const behind = list::previous(item);
    at = oldest_first ? list::next(item) : behind;
    if (&item == wanted) continue;
    const std::uint32_t before = pending.removed;
    if (!submit_one(pool, mine, item)) return pending.put_behind(behind, item);
    if (pending.removed - before > 1)
      at = oldest_first ? pending.jobs.first() : pending.jobs.last();
  }
}

// Takes the job from where this thread keeps it, and drops the ref that kept it.
void take_back(job& job, job_pool* pool) {
  if (pending.has(job)) {
    pending.remove(job);
    trace_job(observe::event::lazy_inline, job);
    job.drop_kept();
  } else if (pool != nullptr) {
    job_queue& mine = pool->queue_here();
    // order: relaxed  only the owner of the queue compares it with itself
    if (job.kept_by.load(std::memory_order_relaxed) == &mine && mine.remove(job)) {
      trace_job(observe::event::lazy_inline, job, true);
      return job.drop_kept();
    }
    if (!pool->memory().take_out(job)) return;
    trace_job(observe::event::lazy_inline, job, true);
    job.drop_kept();
  }
}

// Represents in a queue a job that another thread keeps, and may never submit. Runs that job.
struct proxy_job final : job {
  proxy_job(job_pool& used_pool, job& wanted) noexcept
      : job(&perform, wanted.name, wanted.line, true), pool(used_pool), wanted(wanted) {
    wanted.add_ref();
    // order: relaxed  no other thread can see this job yet
    if (observe::tracing()) number.store(number_in_trace(wanted), std::memory_order_relaxed);
  }
  ~proxy_job() { wanted.drop_ref(); }
  static void perform(job& base, act requested) noexcept {
    auto& self = static_cast<proxy_job&>(base);
    if (requested == act::free) return delete &self;
    if ((requested != act::run && requested != act::cancel) || !claim(self.wanted)) return;
    if (requested == act::run) {
      self.pool.begin_run(self.wanted);
      return run(self.wanted);
    }
    self.pool.count_dropped();
    cancel(self.wanted);
  }
  job_pool& pool;
  job& wanted;
};

// Queues the wanted job, wherever it is kept.
void submit_wanted(job_pool& pool, job& wanted) {
  job_queue& mine = pool.queue_here();
  // order: relaxed (both)  hints: a superfluous proxy job finds the job claimed
  if (wanted.claimed.load(std::memory_order_relaxed)) return;
  // A job that may be set aside for lack of memory needs a proxy job.
  // order: relaxed (both)  as above
  if (!wanted.needs_memory.load(std::memory_order_relaxed) &&
      wanted.kept_by.load(std::memory_order_relaxed) == &mine)
    return;
  if (pending.has(wanted)) {
    job* const behind = pending_list::list::previous(wanted);
    pending.remove(wanted);
    // order: relaxed  the queue publishes it
    wanted.needs_memory.store(false, std::memory_order_relaxed);
    if (pool.submit(wanted, mine, true)) return;
    pending.put_behind(behind, wanted);
    throw std::bad_alloc();
  }
  auto& proxy = *new proxy_job(pool, wanted);
  proxy.drop_ref();  // its maker's ref
  if (pool.submit(proxy, mine, true)) return;
  proxy.drop_kept();
  throw std::bad_alloc();
}

// While one is attached the program is not out of work, whichever thread runs the job.
struct future_waiter final : waiter {
  // The awaiting coroutine has a handle of the job.
  future_waiter(std::shared_ptr<wait_count> counts, const job& awaited)
      : waiter(&tell), counted(std::move(counts)), promised(promise_for(awaited)) {}
  static promise<> promise_for(const job& wanted) {
    auto& state = *::new (memory::allocate(sizeof(tasks::ask_state<void>))) tasks::ask_state<void>;
    state.link.kind = tasks::ask_link::subject::job;
    state.link.asked = &wanted;
    state.link.name_or_context = wanted.name;
    return tasks::future_access::promise_of<void>(state);
  }
  static void tell(waiter& base) noexcept {
    std::unique_ptr<future_waiter> self(static_cast<future_waiter*>(&base));
    self->promised.set_value();
    if (self->counted != nullptr) self->counted->change(false);
  }
  const std::shared_ptr<wait_count> counted;
  promise<> promised;
};

}  // namespace

// A job that runs inside a handler (serial_lazies) may block.
bool may_block_here() noexcept {
  // order: relaxed  the thread's own
  return tasks::running_here().actor.load(std::memory_order_relaxed) == nullptr ||
         pending.stack_top != nullptr || pending.inside_handler;
}

blocking_allowed::blocking_allowed() noexcept
    : before_(std::exchange(pending.inside_handler, true)) {}
blocking_allowed::~blocking_allowed() { pending.inside_handler = before_; }

bool claim(job& job) noexcept {
  // Needed even when there is only one ref: several threads may use the same handle.
  // order: relaxed  decides only which thread runs it
  return !job.claimed.exchange(true, std::memory_order_relaxed);
}

namespace {

TROUPE_NOINLINE void perform_counted(job& job) noexcept {
  const job_pool* const pool = job_pool::current();
  const counted_run counted(pool == nullptr ? nullptr : pool->counts(), job);
  job.perform(job, job::act::run);
}

}  // namespace

void run(job& job) noexcept {
  trace_job(observe::event::lazy_begin, job);
  // order: relaxed  before any wait's mutex
  job.run_by.store(&this_thread(), std::memory_order_relaxed);
  {
    const frame job_frame(job);
    observe::is_watched(observe::watched::counts) ? perform_counted(job)
                                                  : job.perform(job, job::act::run);
  }
  trace_job(observe::event::lazy_end, job);
  // If no handle is left, and none can come, no thread can get the job's exception: it must be
  // reported. Checked before the job is done, since a handle that is dropped later may have been
  // used to get it. The one ref left is the caller's, which took it from where the job was kept.
  // order: relaxed  set before the job was queued for it
  const bool unheard = pending_list::is_orphan(job) && !job.awaited.load(std::memory_order_relaxed);
  finish(job);
  if (unheard) job.perform(job, job::act::report);
}

void report_unheard(const job&, const std::exception_ptr& failure) noexcept {
  job_pool* const pool = job_pool::current();
  if (pool == nullptr) std::terminate();
  pool->report(failure);
}

void cancel(job& job) noexcept {
  job.perform(job, job::act::cancel);
  finish(job);
}

namespace {

void free_job(job& job) noexcept {
  if (!job.is_done()) finish(job);  // no thread will run it
  job.perform(job, job::act::free);
}

}  // namespace

void job::drop_ref() noexcept {
  bool last_of_mine = false;
  const auto forget = [&] {
    if (is_done()) perform(*this, act::forget);
    last_of_mine = pending.has(*this);
  };
  if (refs_of_job(refs).drop_handle(forget)) return free_job(*this);
  // This thread keeps the job, and no other holder is left.
  if (last_of_mine && !(pending.scope != nullptr && pending.scope->runs(*this))) [[unlikely]]
    pending.drop_orphan(*this);
}

void job::drop_kept() noexcept {
  if (refs_of_job(refs).drop_kept()) free_job(*this);
}

TROUPE_NOINLINE void keep(job& kept) noexcept {
  if (pending.jobs_made >= pending.sweep_at) [[unlikely]] {
    cleaner.armed = true;  // the thread's first job
    sweep_pending();
  }
  kept.made_in = this_stack.top;
  pending.append(kept);
}

namespace {

// For a thread that has no job and no fork frame on its stack: it helps the thread that runs the
// job, and sleeps when there is nothing to help with.
// No thread can wait for frames below this on the stack: a job that this runs cannot bury a task.
void wait_and_help(job& awaited, job_pool& pool) {
  waiting_thread& self = this_thread();
  sleeper asleep(self);
  if (!attach(awaited, asleep)) return;
  // order: acquire  the waker is done with it; also sees the result
  while (!asleep.woken.load(std::memory_order_acquire)) {
    if (pool.help(awaited, nullptr) || pool.help(awaited, &self)) continue;
    const waits_for wait(awaited, waits_for::joins{});  // no cycle can lead back here
    const asleep_span traced(awaited);
    // order: acquire  as above
    if (!asleep.woken.load(std::memory_order_acquire)) self.parker.wait();
  }
}

}  // namespace

TROUPE_NOINLINE void need(job& wanted) {
  if (wanted.is_done()) return;
  if (!may_block_here()) {
    throw usage_error("troupe: lazy::get: a handler must not hold its thread; co_await the lazy");
  }
  static_cast<void>(this_thread());  // this may throw; a thread that has claimed a job must run it
  job_pool* const pool = job_pool::current();
  if (pool != nullptr && pool->shares()) submit_pending(*pool, &wanted);
  take_back(wanted, pool);
  if (claim(wanted)) {
    if (pool != nullptr) this_stack.top == nullptr ? pool->begin_run(wanted) : pool->count_run();
    return run_nested(wanted);
  }
  if (pool != nullptr) pool->attend();
  if (pool != nullptr && pool->shares() && !pool->is_simulated() && this_stack.top == nullptr)
    return wait_and_help(wanted, *pool);
  wait_until_done(wanted);
}

TROUPE_NOINLINE future<> when_done(job& wanted) {
  wanted.awaited.store(true, std::memory_order_relaxed);  // order: relaxed  the queue publishes it
  job_pool* const pool = job_pool::current();
  if (pool != nullptr && !pool->is_serial()) {
    if (pool->shares()) submit_pending(*pool, &wanted);
    submit_wanted(*pool, wanted);
  } else {
    static_cast<void>(this_thread());  // as in need()
    take_back(wanted, pool);
    if (claim(wanted)) {
      if (pool != nullptr) pool->count_run();
      run_nested(wanted);
    }
  }
  auto waiter = std::make_unique<future_waiter>(pool == nullptr ? nullptr : pool->waits(), wanted);
  future<> later = waiter->promised.get_future();
  if (waiter->counted != nullptr) waiter->counted->change(true);
  if (attach(wanted, *waiter)) {
    static_cast<void>(waiter.release());
  } else {
    future_waiter::tell(*waiter.release());
  }
  return later;
}

pending_scope::pending_scope(bool runs)
    : frame_(this_stack.top), outer_(pending.scope), began_(pending.jobs_made), runs_(runs) {
  const bool in_work = this_stack.top != nullptr && this_stack.top->forks != nullptr;
  if (in_work || (pending.stack_top == nullptr && tasks::running_here().running_call != nullptr)) {
    throw usage_error(
        "troupe: lazy_scope: it belongs to its thread, and a coroutine does not; open it in a "
        "plain function that a lazy calls");
  }
  pending.scope = this;
}

bool pending_scope::runs(const job& job) const noexcept {
  const pending_scope* at = this;
  while (at != nullptr && job.position <= at->began_) at = at->outer_;
  return at != nullptr && at->runs_ && at->frame_ == job.made_in;
}

pending_scope::~pending_scope() {
  job_pool* const pool = runs_ ? job_pool::current() : nullptr;
  while (runs_ && !pending.jobs.empty() && pending.jobs.last()->position > began_) {
    job& last = *pending.jobs.last();
    if (last.made_in != frame_) {
      pending.drop(last.position - 1, pool);
      continue;
    }
    pending.remove(last);
    // order: relaxed  the queue publishes it
    last.needs_memory.store(false, std::memory_order_relaxed);
    if (pool == nullptr || pool->is_serial() || !submit_unwanted(*pool, last))
      run_unshared(last, pool);
  }
  pending.drop(began_, job_pool::current());
  pending.scope = outer_;
}

}  // namespace troupe::jobs
