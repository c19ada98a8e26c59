#include "jobs/job_pool.hpp"

#include <algorithm>

#include "actor/running.hpp"
#include "actor/turn.hpp"
#include "base/clock.hpp"
#include "jobs/run.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::jobs {
namespace {

constexpr std::int64_t slice_ns = 500'000;  // of a runner's turn, whole jobs

// The pools that live, for threads that are none of theirs.
struct living {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, job_pool*>> pools;
  std::uint64_t next_id = 1;
  static living& get() {
    static living& instance = *new living;
    return instance;
  }
  job_pool* find(std::uint64_t id) {
    std::lock_guard lock(mutex);
    const auto at = std::ranges::find(pools, id, &std::pair<std::uint64_t, job_pool*>::first);
    return at == pools.end() ? nullptr : at->second;
  }
};

constinit thread_local job_pool* pool_inside [[gnu::tls_model("initial-exec")]] = nullptr;
// Of the pools that this thread has made, the last few. Plain data: it may be asked while the thread ends.
struct made_pools {
  static constexpr unsigned most = 8;
  std::uint64_t ids[most] = {};  // oldest first
  unsigned count = 0;
  void add(std::uint64_t id) noexcept {
    if (count == most) std::copy(ids + 1, ids + count--, ids);
    ids[count++] = id;
  }
};
constinit thread_local made_pools made_here [[gnu::tls_model("initial-exec")]];

std::uint64_t enlist(job_pool& made) {
  living& all = living::get();
  std::lock_guard lock(all.mutex);
  all.pools.emplace_back(all.next_id, &made);
  made_here.add(all.next_id);
  return all.next_id++;
}

}  // namespace

struct job_pool::runner final : sched::runnable {
  explicit runner(job_pool& pool) noexcept : of(pool) { type = &runner_type; }

  static sched::after_turn run(sched::runnable& item) { return static_cast<runner&>(item).of.run_some(); }
  static bool settle(sched::runnable&) { return false; }
  static bool pending(const sched::runnable&) { return false; }
  static void dispose(sched::runnable& item) noexcept {
    auto* self = static_cast<runner*>(&item);
    job_pool& of = self->of;
    std::destroy_at(self);
    memory::deallocate(self, sizeof(runner));
    of.runner_ended();
  }
  static constexpr sched::runnable_type runner_type{&run, &settle, &pending, &dispose, &dispose};

  job_pool& of;
};

job_pool::job_pool(actor::system& home, sched::executor& workers, unsigned runners_max, job_pool_options options,
                   std::function<void(bool)> keeps)
    : home_(home), workers_(workers), options_(options), waits_(std::make_shared<wait_count>(std::move(keeps))),
      id_(enlist(*this)), runners_(runners_max) {
  home_.jobs = this;
}

job_pool::~job_pool() {
  home_.jobs = nullptr;
  waits_->end();
  living& all = living::get();
  {
    std::lock_guard lock(all.mutex);
    std::erase_if(all.pools, [this](const auto& one) { return one.second == this; });
  }
  for (auto& queue : queues_) {
    while (job* one = queue->pop()) drop(*one);  // nobody else is left
  }
}

void job_pool::drop(job& unwanted) noexcept {
  if (claim(unwanted)) {
    count_dropped();
    cancel(unwanted);
  }
  unwanted.drop_ref();
}

job_pool* job_pool::current() noexcept {
  if (pool_inside != nullptr) return pool_inside;
  // order: relaxed  the thread's own
  if (const actor::system* home = actor::current_turn().home.load(std::memory_order_relaxed)) {
    if (home->jobs != nullptr) return static_cast<job_pool*>(home->jobs);
  }
  for (; made_here.count != 0; --made_here.count) {
    if (job_pool* pool = living::get().find(made_here.ids[made_here.count - 1])) return pool;
  }
  return nullptr;
}

job_pool::inside::inside(job_pool* of) noexcept : before_(std::exchange(pool_inside, of)) {}
job_pool::inside::~inside() { pool_inside = before_; }

constinit thread_local job_pool::known_queue job_pool::known_;

job_queue& job_pool::make_queue_here() {
  auto made = std::make_unique<job_queue>();
  const std::thread::id self = std::this_thread::get_id();
  std::lock_guard lock(mutex_);
  auto at = std::ranges::find_if(queues_, [self](const auto& one) { return one->owner == self; });
  if (at == queues_.end()) at = std::ranges::find_if(queues_, [](const auto& one) { return one->owner == std::thread::id{}; });
  if (at == queues_.end()) at = queues_.insert(queues_.end(), std::move(made));
  (*at)->owner = self;
  known_ = {id_, at->get()};
  return *known_.queue;
}

void job_pool::leave_queue() noexcept {
  if (known_.pool != id_) return;
  std::lock_guard lock(mutex_);
  known_.queue->owner = {};
  known_ = {};
}

bool job_pool::submit(job& one, job_queue& mine, bool urgent) noexcept {
  if ((!urgent && mine.count() >= options_.queued_max) || !mine.push(one)) return false;
  if (runners_.may_call()) [[unlikely]] call_runner();
  return true;
}

void job_pool::call_runner() noexcept {
  if (!runners_.begin()) return;
  runner* made = nullptr;
  try {
    made = ::new (memory::allocate(sizeof(runner))) runner(*this);
  } catch (const std::bad_alloc&) {
    static_cast<void>(runners_.end());
    return;  // who wants the job runs it
  }
  workers_.submit_to_any(*made);
}

void job_pool::runner_ended() noexcept {
  if (runners_.end() && some_left()) call_runner();
}

bool job_pool::some_left() const noexcept {
  // order: relaxed  a hint; the end drops what is left
  if (home_.closing.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(queues_, [](const auto& one) { return !one->empty(); });
}

job* job_pool::take(job_queue& mine) noexcept {
  if (job* one = mine.pop()) return one;
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    next_victim_ = next_victim_ + 1 < queues_.size() ? next_victim_ + 1 : 0;
    if (queues_[next_victim_].get() == &mine) continue;
    if (job* one = queues_[next_victim_]->steal()) return one;
  }
  return nullptr;
}

sched::after_turn job_pool::run_some() noexcept try {
  const inside here(this);
  const actor::inside_procedure as_procedure(home_);
  job_queue& mine = queue_here();
  const std::int64_t began_ns = base::now_ns();
  while (job* one = take(mine)) {
    if (home_.discarding()) {
      drop(*one);
      continue;
    }
    if (claim(*one)) run(*one);
    one->drop_ref();
    if (base::now_ns() - began_ns >= slice_ns) return sched::after_turn::again;
  }
  return sched::after_turn::gone;
} catch (const std::bad_alloc&) {
  return sched::after_turn::gone;
}

}  // namespace troupe::jobs
