// What a thread does with the jobs that it makes and wants.
#include "troupe/jobs/job.hpp"

#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>

#include "jobs/job_pool.hpp"
#include "jobs/run.hpp"
#include "jobs/waiting.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::jobs {
namespace {

// What the thread has made and not submitted, by age.
struct pending_list {
  void append(job& one) noexcept {
    one.place = ++made;
    one.older = newest;
    one.newer = nullptr;
    (newest == nullptr ? oldest : newest->newer) = &one;
    newest = &one;
    one.kept_by.store(this, std::memory_order_relaxed);  // order: relaxed  only this thread compares it with itself
  }
  // order: relaxed  as above
  bool has(const job& one) const noexcept { return one.kept_by.load(std::memory_order_relaxed) == this; }
  void remove(job& one) noexcept {
    (one.older == nullptr ? oldest : one.older->newer) = one.newer;
    (one.newer == nullptr ? newest : one.newer->older) = one.older;
    one.kept_by.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as above
  }
  // Those that are younger go unrun.
  void drop(std::uint64_t than) noexcept {
    job_pool* const pool = newest == nullptr ? nullptr : job_pool::current();
    while (newest != nullptr && newest->place > than) {
      job& one = *newest;
      remove(one);
      pool == nullptr ? one.drop_ref() : pool->drop(one);
    }
  }
  job* oldest = nullptr;
  job* newest = nullptr;
  std::uint64_t made = 0;
  const std::byte* stack_top = nullptr;  // where the outermost job of this thread began
};
constinit thread_local pending_list pending [[gnu::tls_model("initial-exec")]];

struct pending_cleaner {
  bool armed = false;
  ~pending_cleaner() { pending.drop(0); }
};
thread_local pending_cleaner cleaner;

// Jobs that want jobs nest on the stack as deep as this; then a thread of its own takes over.
constexpr std::ptrdiff_t stack_max = 1 << 20;  // bytes

// The caller has two refs of it: one goes.
void drop_second(job& one) noexcept {
  // order: acquire  the two are all: sees what others did; relaxed: nobody else has one
  if (one.refs.load(std::memory_order_acquire) == 2) {
    one.refs.store(1, std::memory_order_relaxed);
  } else {
    one.drop_ref();
  }
}

// Runs it here, or on a fresh stack when this one is used up, and waits for that.
void run_nested(job& one) {
  const std::byte here{};
  const bool outermost = pending.stack_top == nullptr;
  if (outermost) pending.stack_top = &here;
  const std::ptrdiff_t used = pending.stack_top - &here;
  if (used < stack_max && used > -stack_max) {
    run(one);
    if (outermost) pending.stack_top = nullptr;
    return;
  }
  const waits_for it(one);  // first, so that the other thread finds a cycle
  std::thread fresh;
  try {
    fresh = std::thread([&one, pool = job_pool::current()] {
      const job_pool::inside its(pool);
      run(one);
    });
  } catch (const std::system_error&) {
    return run(one);  // as deep as this stack goes
  }
  fresh.join();
}

// All but the wanted one, the newest first: who wants them goes from the oldest on, and thieves from the other end.
void submit_pending(job_pool& pool, const job* wanted) {
  job_queue& mine = pool.queue_here();
  for (job* at = pending.newest; at != nullptr;) {
    job& one = *at;
    at = one.older;
    if (&one == wanted) continue;
    pending.remove(one);
    // order: relaxed  a hint: somebody else has begun it
    if (one.claimed.load(std::memory_order_relaxed)) {
      one.drop_ref();
    } else if (!pool.submit(one, mine)) {
      // What was made meanwhile is another list by now.
      if (claim(one)) run_nested(one);
      one.drop_ref();
      at = pending.newest;
    }
  }
}

// Takes it from where this thread keeps it, whose ref goes.
void take_back(job& one, job_pool* pool) {
  if (pending.has(one)) {
    pending.remove(one);
    drop_second(one);
  } else if (pool != nullptr) {
    job_queue& mine = pool->queue_here();
    // order: relaxed  only the owner of the queue compares it with itself
    if (one.kept_by.load(std::memory_order_relaxed) == &mine && mine.remove(one)) drop_second(one);
  }
}

// Runs a job that another thread keeps, which may never submit it.
struct errand final : job {
  explicit errand(job& wanted) noexcept : job(&perform, wanted.name), of(wanted) { of.add_ref(); }
  ~errand() { of.drop_ref(); }
  static void perform(job& base, act what) noexcept {
    auto& self = static_cast<errand&>(base);
    if (what == act::free) return delete &self;
    if (claim(self.of)) run(self.of);
  }
  job& of;
};

void submit_for_another(job_pool& pool, job& wanted) {
  auto& one = *new errand(wanted);
  if (!pool.submit(one, pool.queue_here())) {
    errand::perform(one, job::act::run);
    one.drop_ref();
  }
  one.drop_ref();
}

struct told_future final : waiter {
  told_future() noexcept : waiter(&tell) {}
  static void tell(waiter& base) noexcept {
    std::unique_ptr<told_future> self(static_cast<told_future*>(&base));
    self->promised.set_value();
  }
  promise<> promised;
};

}  // namespace

bool claim(job& one) noexcept {
  // Also with one ref: several threads may use the same handle.
  // order: relaxed  decides only who runs it
  return !one.claimed.exchange(true, std::memory_order_relaxed);
}

void run(job& one) noexcept {
  one.run_by.store(&this_thread(), std::memory_order_relaxed);  // order: relaxed  in front of any wait's mutex
  one.perform(one, job::act::run);
  finish(one);
}

void job::drop_ref() noexcept {
  // order: acquire  the only one left: sees what the others did
  if (refs.load(std::memory_order_acquire) != 1) {
    // order: acq_rel  what its holder did is seen by the one that frees it; pairs with itself
    if (refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  // order: relaxed  nobody else has it
  for (std::uintptr_t at = word.load(std::memory_order_relaxed); at != 0 && at != done;) {
    auto& unheard = *reinterpret_cast<waiter*>(at);
    at = reinterpret_cast<std::uintptr_t>(unheard.next);
    unheard.wake(unheard);
  }
  perform(*this, act::free);
}

TROUPE_NOINLINE void keep(job& made) noexcept {
  if (pending.made == 0) [[unlikely]] cleaner.armed = true;  // a thread's first
  pending.append(made);
}

TROUPE_NOINLINE void need(job& of) {
  if (of.is_done()) return;
  if (actor::current_cell() != nullptr) {
    throw usage_error("troupe: lazy::get: a handler must not hold its thread; co_await the lazy");
  }
  job_pool* const pool = job_pool::current();
  if (pool != nullptr && !pool->is_serial()) submit_pending(*pool, &of);
  take_back(of, pool);
  if (claim(of)) return run_nested(of);
  if (pool != nullptr) pool->attend();
  wait_until_done(of);
}

TROUPE_NOINLINE future<> when_done(job& of) {
  job_pool* const pool = job_pool::current();
  if (pool != nullptr && !pool->is_serial()) {
    submit_pending(*pool, nullptr);
    // order: relaxed (both)  hints: one too many finds it claimed
    if (!of.claimed.load(std::memory_order_relaxed) && of.kept_by.load(std::memory_order_relaxed) != &pool->queue_here()) {
      submit_for_another(*pool, of);
    }
  } else {
    take_back(of, pool);
    if (claim(of)) run_nested(of);
  }
  auto told = std::make_unique<told_future>();
  future<> later = told->promised.get_future();
  if (attach(of, *told)) {
    static_cast<void>(told.release());
  } else {
    told->promised.set_value();
  }
  return later;
}

pending_scope::pending_scope(bool runs) noexcept : began_(pending.made), runs_(runs) {}

pending_scope::~pending_scope() {
  job_pool* const pool = runs_ ? job_pool::current() : nullptr;
  while (runs_ && pending.newest != nullptr && pending.newest->place > began_) {
    job& one = *pending.newest;
    pending.remove(one);
    if (pool == nullptr || pool->is_serial() || !pool->submit(one, pool->queue_here())) {
      if (claim(one)) run_nested(one);
      one.drop_ref();
    }
  }
  pending.drop(began_);
}

}  // namespace troupe::jobs
