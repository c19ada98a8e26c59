// How jobs find threads: the queues of threads (make_queue_here), calling runners (submit,
// hand_on), taking from others (steal_job, steal_part), and a runner's turn (run_some, run_one).
#include "jobs/pool/job_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ranges>
#include <thread>

#include "base/atomics.hpp"
#include "base/clock.hpp"
#include "jobs/pool/run.hpp"
#include "jobs/waits/trace_job.hpp"
#include "jobs/waits/waiting_threads.hpp"
#include "observe/counting/sampled_sends.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::jobs {
namespace {

constexpr std::int64_t slice_ns = 500'000;  // of a runner's turn; a job is not interrupted
constexpr std::int64_t linger_ns = 50'000;  // how long a runner that finds nothing stays
// How long searches pass over an owner that has not answered.
constexpr std::int64_t passed_over_ns = 500'000;

const char* describe_runner(sched::message*, void*, sched::message_act) {
  return "lazies and forks";
}
const char* describe_lazy(sched::message*, void*, sched::message_act) { return "lazy"; }

// The pools that exist, for threads that belong to none.
struct living {
  std::mutex mutex;
  struct pool_of_thread {
    job_pool* pool;
    std::thread::id maker;
  };
  std::vector<pool_of_thread> pools;  // oldest first
  std::uint64_t ids = 0;
  static living& get() {
    static living& instance = *new living;
    return instance;
  }
  std::uint64_t next_id() {
    std::lock_guard lock(mutex);
    return ++ids;
  }
  // The newest that the calling thread has made.
  job_pool* find_made_here() {
    const std::thread::id self = std::this_thread::get_id();
    std::lock_guard lock(mutex);
    const auto reversed = std::views::reverse(pools);
    const auto at = std::ranges::find(reversed, self, &pool_of_thread::maker);
    return at == reversed.end() ? nullptr : at->pool;
  }
};

// Whether the part belongs to the tree, or to a tree within it. Null: any tree.
bool is_within(const fork_frame& part, const fork_tree* only) noexcept {
  const fork_tree* tree = only == nullptr ? nullptr : part.within->tree;
  while (tree != only) {
    if (tree == nullptr) return false;
    tree = tree->within;
  }
  return true;
}

template <class Deque>
fork_frame* steal_within(Deque& deque, const fork_tree* only) noexcept {
  return deque.steal([only](const fork_frame& part) { return is_within(part, only); });
}

// The owner's newest part.
fork_frame* pop_part(fork_deques& deques) noexcept {
  fork_frame* const forked = deques.forks.pop();
  return forked != nullptr || deques.loops.count() == 0 ? forked : deques.loops.pop();
}

constinit thread_local job_pool* pool_inside [[gnu::tls_model("initial-exec")]] = nullptr;
// Whether this thread has made a pool. Another thread that had its number may also have made some.
// Plain data: it may be read while the thread ends.
constinit thread_local bool made_some_here [[gnu::tls_model("initial-exec")]] = false;

void enlist(job_pool& pool) {
  living& all = living::get();
  std::lock_guard lock(all.mutex);
  all.pools.push_back({&pool, std::this_thread::get_id()});
  made_some_here = true;
}

}  // namespace

// Made with the pool: calling a runner therefore needs no memory.
struct job_pool::runner final : sched::runnable {
  explicit runner(job_pool& pool) noexcept : pool(pool) { type = &runner_type; }

  static sched::after_turn run(sched::runnable& item) {
    auto& self = static_cast<runner&>(item);
    return self.pool.run_some(self);
  }
  static bool deactivate(sched::runnable&) { return false; }
  static bool pending(const sched::runnable&) { return false; }
  static void dispose(sched::runnable& item) noexcept {
    auto* self = static_cast<runner*>(&item);
    job_pool& pool = self->pool;
    const bool arrived = self->arrived;
    std::destroy_at(self);
    ::new (self) runner(pool);
    {
      std::lock_guard lock(pool.runners_mutex_);
      self->next_free = std::exchange(pool.free_runners_, self);
    }
    arrived ? pool.runner_ended() : pool.runners_.end_unarrived();
  }
  static constexpr sched::runnable_vtable runner_type{&run, &deactivate, &pending, &dispose,
                                                      &dispose};

  job_pool& pool;
  runner* next_free = nullptr;
  bool arrived = false;
  bool found_some = false;
  std::int64_t lingers_since_ns = 0;
  bool jobs_first = true;
};

job_pool::job_pool(tasks::runtime_state& runtime, sched::executor& workers, unsigned runners_max,
                   job_pool_options options)
    : runtime_(runtime),
      counts_(runtime.runtime.is_observed() ? std::make_unique<lazy_counts>() : nullptr),
      workers_(workers),
      options_(options),
      waits_(std::make_shared<wait_count>(runtime.runtime)),
      id_(living::get().next_id()),
      memory_(new memory_account(
          *this, [](job_pool& self) noexcept { self.call_runner(); }, options.resource_bytes)),
      runners_(runners_max) {
  for (unsigned i = 0; i < runners_max; ++i) {
    all_runners_.push_back(std::make_unique<runner>(*this));
    all_runners_.back()->next_free = std::exchange(free_runners_, all_runners_.back().get());
    for_runners_.push_back(&add_queue());
    queues_.back()->owner = std::this_thread::get_id();  // until a runner takes it over
  }
  enlist(*this);  // last: if memory runs out before this, no thread can see the pool
  runtime_.jobs = this;
  runtime_.waits_for_jobs = &waits_of_threads;
}

job_pool::~job_pool() {
  run_parts_left();
  runtime_.jobs = nullptr;
  waits_->end();
  living& all = living::get();
  {
    std::lock_guard lock(all.mutex);
    std::erase_if(all.pools, [this](const auto& entry) { return entry.pool == this; });
  }
  for (auto& queue : queues_) {
    while (job* item = queue->pop()) drop(*item);  // no other thread is left
  }
  while (job* item = memory_->take_up()) drop(*item);
  memory_->close();
}

void job_pool::drop(job& unwanted) noexcept {
  if (claim(unwanted)) {
    if (!unwanted.is_proxy_job) count_dropped();
    cancel(unwanted);
  }
  unwanted.drop_kept();
}

job_pool* job_pool::current() noexcept {
  if (pool_inside != nullptr) return pool_inside;
  // order: relaxed  the thread's own
  if (const tasks::runtime_state* runtime =
          tasks::running_here().runtime.load(std::memory_order_relaxed)) {
    if (runtime->jobs != nullptr) return static_cast<job_pool*>(runtime->jobs);
  }
  return made_some_here ? living::get().find_made_here() : nullptr;
}

job_pool::inside::inside(job_pool* pool) noexcept : before_(std::exchange(pool_inside, pool)) {}
job_pool::inside::~inside() { pool_inside = before_; }

constinit thread_local job_pool::known_queue job_pool::known_;

job_queue& job_pool::make_queue_here(bool as_runner) {
  const std::thread::id self = std::this_thread::get_id();
  const auto is_mine = [&](const auto& queue) {
    return queue->owner == self &&
           std::ranges::find(for_runners_, queue.get()) == for_runners_.end();
  };
  std::lock_guard lock(mutex_);
  job_queue* mine = nullptr;
  if (const auto at = std::ranges::find_if(queues_, is_mine); at != queues_.end()) {
    mine = at->get();
  } else if (as_runner && !for_runners_.empty()) {
    mine = for_runners_.back();
    for_runners_.pop_back();
  } else if (const auto none = std::ranges::find_if(
                 queues_, [](const auto& queue) { return queue->owner == std::thread::id{}; });
             none != queues_.end()) {
    mine = none->get();
  } else {
    mine = &add_queue();
  }
  mine->owner = self;
  known_ = {id_, mine};
  return *mine;
}

// The caller holds the mutex, or makes the pool.
job_queue& job_pool::add_queue() {
  job_queue& queue = *queues_.emplace_back(std::make_unique<job_queue>());
  queue.older = newest_queue_.load(std::memory_order_relaxed);  // order: relaxed  under the mutex
  // order: release  publishes the queue; pairs with visit_queues/acquire
  newest_queue_.store(&queue, std::memory_order_release);
  return queue;
}

// Looks at each queue until `look` returns true: from the one where this thread's last search for
// work ended, or from the next one.
template <class Look>
void job_pool::visit_queues(bool from_next, const Look& look) const noexcept {
  // order: acquire  sees the queues; pairs with add_queue/release
  job_queue* const newest = newest_queue_.load(std::memory_order_acquire);
  if (newest == nullptr) return;
  const auto next = [newest](const job_queue& queue) {
    return queue.older == nullptr ? newest : queue.older;
  };
  job_queue* const self = known_.pool == id_ ? known_.queue : nullptr;
  job_queue* first = self == nullptr ? nullptr : self->last_victim;
  if (first == nullptr) first = newest;
  if (from_next) first = next(*first);
  job_queue* at = first;
  do {
    if (look(*at)) break;
    at = next(*at);
  } while (at != first);
  if (from_next && self != nullptr) self->last_victim = at;
}

job_pool::working::working(job_pool& pool, bool as_runner)
    : queue(known_.pool == pool.id_ ? *known_.queue : pool.make_queue_here(as_runner)),
      // order: relaxed (both)  a hint for thieves, needed only where jobs are not stolen
      before_(queue.busy.exchange(true, std::memory_order_relaxed)) {}
// order: relaxed  as above
job_pool::working::~working() { queue.busy.store(before_, std::memory_order_relaxed); }

void job_pool::leave_queue() noexcept {
  if (known_.pool != id_) return;
  std::lock_guard lock(mutex_);
  known_.queue->owner = {};
  known_ = {};
}

bool job_pool::submit(job& item, job_queue& mine, bool urgent) noexcept {
  if (!urgent && mine.count() >= options_.queued_max) return false;
  trace_job(observe::event::lazy_queued, item);  // before another thread may free it
  if (!mine.push(item)) {
    trace_job(observe::event::lazy_taken, item);
    return false;
  }
  if (runners_.wants_one()) [[unlikely]]
    call_runner();
  // order: relaxed  a hint: a lost one costs parallelism
  if (mine.wants_work.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    // order: acquire  its parker was made; pairs with help/release
    if (waiting_thread* const helps = mine.wants_work.exchange(nullptr, std::memory_order_acquire))
      helps->parker.notify();
  }
  return true;
}

void job_pool::call_runner() noexcept {
  if (runner* const idle = begin_runner()) workers_.submit_to_any(*idle);
}

// Null when there are enough runners.
job_pool::runner* job_pool::begin_runner() noexcept {
  // order: relaxed  a hint: at the end no runner is called
  if (runtime_.closing.load(std::memory_order_relaxed) || !runners_.may_call() || !runners_.begin())
    return nullptr;
  std::lock_guard lock(runners_mutex_);
  return std::exchange(free_runners_, free_runners_->next_free);
}

// At the start of a runner's turn, and after each theft: the work just taken may be long, and until
// it is done this runner does not look. Calls two runners if there is work for each, so that their
// number doubles with each wake-up. Runners that are on their way already count.
void job_pool::hand_on() noexcept {
  constexpr std::size_t calls_max = 2;
  if (!shares() || is_simulated() || !runners_.may_call()) return;
  const std::size_t coming = runners_.on_their_way(), left = count_left(coming + calls_max);
  for (std::size_t called = coming; called < left; ++called) {
    runner* const idle = begin_runner();
    if (idle == nullptr) return;
    workers_.submit_to_sleeper(*idle);
  }
}

// How much work is in queues, at most `enough`. Starts with the last victim's queue, which usually
// suffices.
std::size_t job_pool::count_left(std::size_t enough) const noexcept {
  std::size_t sum = 0;
  visit_queues(false, [&](const job_queue& queue) {
    if (may_take_from(queue)) sum += queue.count() + queue.parts.count();
    return sum >= enough;
  });
  return std::min(sum, enough);
}

bool job_pool::slice_over(std::int64_t began_ns) const noexcept {
  if (is_simulated()) return choose(4) == 1;
  return base::now_ns() - began_ns >= slice_ns;
}

void job_pool::runner_ended() noexcept {
  if (runners_.end() && some_left()) call_runner();
}

bool job_pool::some_left() const noexcept {
  // order: relaxed  a hint; the end drops the remaining jobs
  if (runtime_.closing.load(std::memory_order_relaxed)) return false;
  if (memory_->some_may_go_on()) return true;
  std::lock_guard lock(mutex_);  // as steal_part
  bool some = false;
  visit_queues(false, [&](const job_queue& queue) {
    return some = may_take_from(queue) && (!queue.empty() || !queue.parts.empty());
  });
  return some;
}

std::size_t job_pool::queued() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& queue : queues_) sum += queue->count();
  return sum + memory_->aside();
}

// order: relaxed  a hint
bool job_pool::may_take_from(const job_queue& queue) const noexcept {
  return shares() || !queue.busy.load(std::memory_order_relaxed);
}

void job_pool::note_stolen(job& item) noexcept {
  trace_job(observe::event::lazy_stolen, item);
  if (counts_ != nullptr) [[unlikely]]
    counts_->set_stolen(true);
}

job* job_pool::steal_job(const job_queue& mine) noexcept {
  job* stolen = nullptr;
  visit_queues(true, [&](job_queue& victim) {
    if (&victim != &mine && may_take_from(victim)) stolen = victim.steal();
    return stolen != nullptr;
  });
  if (stolen != nullptr) note_stolen(*stolen);
  return stolen;
}

bool job_pool::help(const job& with, waiting_thread* wants_work) noexcept {
  // order: acquire  sees the index to start from; pairs with begin_run/release
  job_queue* const queue = with.queues_in.load(std::memory_order_acquire);
  if (queue == nullptr) return false;
  job* item = nullptr;
  {
    std::lock_guard lock(mutex_);
    // The queue may belong to a destroyed pool.
    if (std::ranges::find(queues_, queue, &std::unique_ptr<job_queue>::get) == queues_.end())
      return false;
    // order: release  a thread that waits for the first time has just made its parker; pairs with
    // submit/acquire
    if (wants_work != nullptr) queue->wants_work.store(wants_work, std::memory_order_release);
    // order: relaxed  the index was published with the queue
    item = queue->steal_from(queue->runs_from.load(std::memory_order_relaxed));
  }
  if (item == nullptr) return false;
  note_stolen(*item);
  run_job(*item);
  return true;
}

// An owner that does not answer is passed over while another one may: a theft without its help
// interrupts all processors of the program. In the end each deque was either asked or tried.
fork_frame* job_pool::steal_part(const fork_deques& mine, const fork_tree* only) noexcept {
  // A searcher that refuses a part takes it out for a moment: some_left must not look meanwhile.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (only != nullptr) lock.lock();
  const auto is_victim = [&](const job_queue& queue) {
    return &queue.parts != &mine && may_take_from(queue);
  };
  fork_frame* stolen = nullptr;
  bool passes_over = false;
  visit_queues(true, [&](job_queue& victim) {
    if (!is_victim(victim)) return false;
    stolen = steal_within(victim.parts.loops, only);
    if (stolen == nullptr && victim.parts.forks.count() != 0)
      stolen = ask_or_steal(victim, only, passes_over);
    return stolen != nullptr;
  });
  if (stolen != nullptr || !passes_over) return stolen;
  visit_queues(false, [&](job_queue& victim) {
    if (is_victim(victim)) stolen = steal_within(victim.parts.forks, only);
    return stolen != nullptr;
  });
  return stolen;
}

// An owner that runs parts answers at its next fork. One that did not is passed over for a while;
// then it is asked once more, and loses a part if it is silent still: its parts do not wait for as
// long as other owners answer.
fork_frame* job_pool::ask_or_steal(job_queue& victim, const fork_tree* only,
                                   bool& passes_over) noexcept {
  fork_deques& parts = victim.parts;
  if (!parts.is_visited() || is_simulated()) return steal_within(parts.forks, only);
  // order: relaxed  a hint
  const std::int64_t silent_since = victim.silent_since_ns.load(std::memory_order_relaxed);
  const std::int64_t now = base::now_ns();
  if (silent_since != 0 && now - silent_since < passed_over_ns) {
    passes_over = true;
    return nullptr;
  }
  if (!victim.ask_for_part(only)) return steal_within(parts.forks, only);  // another searcher asks
  parts.hurry();
  const auto reply = victim.request.await(only);
  if (reply.by_owner) {
    // order: relaxed  a hint
    if (silent_since != 0) victim.silent_since_ns.store(0, std::memory_order_relaxed);
    return reply.part;
  }
  // order: relaxed  a hint
  victim.silent_since_ns.store(now, std::memory_order_relaxed);
  if (silent_since != 0) return steal_within(parts.forks, only);
  passes_over = true;
  return nullptr;
}

void job_pool::answer(fork_deques& mine) noexcept {
  if (known_.pool != id_ || &known_.queue->parts != &mine) return;
  known_.queue->request.answer(mine.forks, is_within);
}

void job_pool::run_job(job& item) noexcept {
  run_taken(item);
  if (counts_ != nullptr) [[unlikely]]
    counts_->set_stolen(false);  // the thread that needs the job was faster
}

void job_pool::run_taken(job& job) noexcept {
  if (runtime_.discarding()) return drop(job);
  // order: relaxed  set before the job was queued
  if (job.needs_memory.load(std::memory_order_relaxed) && memory_->is_short())
    return set_aside(job);
  if (claim(job)) {  // else the thread that needs the job runs it
    if (!job.is_proxy_job) begin_run(job);
    // order: relaxed  for running_handlers, a snapshot
    tasks::running_here().name.store(job.name, std::memory_order_relaxed);
    run(job);
    // order: relaxed  as above
    tasks::running_here().name.store(nullptr, std::memory_order_relaxed);
  }
  job.drop_kept();
}

void job_pool::report(std::exception_ptr failure) noexcept {
  runtime_.runtime.report(&describe_lazy, std::move(failure));
}

// If enough memory is freed at this instant, it may be that no other thread sees the job there:
// this runner looks in its next round (run_one).
void job_pool::set_aside(job& job) noexcept {
  trace_job(observe::event::lazy_queued, job);  // before it may be gone
  if (memory_->set_aside(job)) return;
  trace_job(observe::event::lazy_taken, job);
  job.drop_kept();
}

// Jobs and parts take precedence in every other slice, so that neither waits for the other for
// longer than a slice.
bool job_pool::run_one(job_queue& mine, fork_worker_state& parts, bool jobs_first,
                       bool hands_on) noexcept {
  job* item = jobs_first ? mine.pop() : nullptr;
  if (item == nullptr && memory_->has_limit() && memory_->some_may_go_on()) {
    item = memory_->take_up();
    // the thread that gave bytes back has called one runner
    if (memory_->some_may_go_on() && runners_.may_call()) call_runner();
  }
  fork_frame* part = item == nullptr ? pop_part(mine.parts) : nullptr;
  if (part == nullptr && item == nullptr && !jobs_first) item = mine.pop();
  if (item != nullptr) trace_job(observe::event::lazy_taken, *item);
  if (part == nullptr && item == nullptr) {
    item = steal_job(mine);
    if (item == nullptr) part = steal_part(mine.parts, nullptr);
    hands_on = hands_on || item != nullptr || part != nullptr;
    if (part != nullptr) parts.look_at_next_forks();
  }
  if (hands_on && (part != nullptr || item != nullptr)) hand_on();
  if (part != nullptr) {
    parts.run(*part);
  } else if (item != nullptr) {
    run_job(*item);
  }
  return part != nullptr || item != nullptr;
}

// A runner that has taken part, and finds nothing now, stays for a while if there may be more soon:
// about as long as it would take to wake another runner. Other runnables of its worker come first.
bool job_pool::may_linger(runner& self) noexcept {
  // order: relaxed (both)  hints
  if (!self.found_some || trees_.load(std::memory_order_relaxed) == 0 ||
      runtime_.closing.load(std::memory_order_relaxed))
    return false;
  if (workers() < 2 || !shares() || is_simulated()) return false;
  const std::int64_t now = base::now_ns();
  if (self.lingers_since_ns == 0) self.lingers_since_ns = now;
  if (now - self.lingers_since_ns > linger_ns) return false;
  std::this_thread::yield();
  return true;
}

sched::after_turn job_pool::run_some(runner& self) noexcept {
  const inside entered(this);
  const tasks::inside_procedure as_procedure(runtime_, &describe_runner);
  const observe::sampled_procedure sample;
  const working at_work(*this, true);  // made with the pool: needs no memory
  fork_worker_state parts(this, at_work.queue.parts, true);
  if (!std::exchange(self.arrived, true)) {
    runners_.arrive();
    parts.look_at_next_forks();
  }
  bool is_first = true;
  while (run_one(at_work.queue, parts, self.jobs_first, std::exchange(is_first, false))) {
    self.found_some = true;
    self.lingers_since_ns = 0;
    // Memory may be freed by actors' turns: let them run.
    if (!parts.slice_over() && !(memory_->has_limit() && memory_->is_short())) continue;
    self.jobs_first = !self.jobs_first;
    return sched::after_turn::again;
  }
  if (may_linger(self)) return sched::after_turn::again;
  count_call(!self.found_some);
  return sched::after_turn::gone;
}

void job_pool::run_parts_left() noexcept {
  fork_deques none;
  fork_worker_state worker(this, none, false);
  for (;;) {
    fork_frame* part = pop_part(none);
    if (part == nullptr) part = steal_part(none, nullptr);
    if (part == nullptr) return;
    worker.run(*part);
  }
}

// ---- how other threads are called to take part in forks: not too often, and rather late than
// never ----

namespace {

// The least time between two calls by one thread. It doubles with each call without success, up to
// doublings_max times.
constexpr std::int64_t call_spacing_ns = 10'000;
constexpr std::uint32_t doublings_max = 7;
// An offer that came too soon is repeated after this time.
constexpr std::chrono::milliseconds late_offer_after(1);

}  // namespace

void job_pool::offer(fork_tree& tree, std::int64_t now) noexcept {
  if (!shares()) return;
  // order: relaxed (all)  hints: a call too many or too late costs only time
  const std::int64_t spacing =
      call_spacing_ns << std::min(vain_calls_.load(std::memory_order_relaxed), doublings_max);
  std::int64_t& offered_at_ns = queue_here().offered_at_ns;
  if (!is_simulated() && now - offered_at_ns < spacing) return offer_later();
  const fork_tree* wants_work = &tree;
  // order: seq_cst  after the push; pairs with help
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // order: relaxed  behind the fence
  while (wants_work != nullptr && !wants_work->wants_work.load(std::memory_order_relaxed))
    wants_work = wants_work->within;
  if (wants_work == nullptr && !runners_.wants_one()) return;
  offered_at_ns = now;
  if (wants_work != nullptr) wants_work->sleeper->parker.notify();
  call_runner();
}

void job_pool::offer_later() noexcept {
  // order: relaxed (both)  as in offer; the timers' lock publishes
  if (late_.armed.load(std::memory_order_relaxed) ||
      late_.armed.exchange(true, std::memory_order_relaxed))
    return;
  tasks::timers& clock = *runtime_.host.clock;
  try {
    tasks::arm(clock, late_, tasks::due_in(clock, late_offer_after));
  } catch (
      const std::exception&) {  // no thread for timers, or no memory: the next offer tries again
    late_.armed.store(false, std::memory_order_relaxed);  // order: relaxed  as above
  }
}

void job_pool::late_offer::make(timer& self) noexcept {
  auto& late = static_cast<late_offer&>(self);
  // order: relaxed  the timers' lock publishes it
  late.armed.store(false, std::memory_order_relaxed);
  if (!late.pool.some_left()) return;
  wake_those_that_want_work(late.pool);
  late.pool.call_runner();
}

void job_pool::count_call(bool in_vain) noexcept {
  // order: relaxed (both)  as in offer
  vain_calls_.store(in_vain ? vain_calls_.load(std::memory_order_relaxed) + 1 : 0,
                    std::memory_order_relaxed);
}

}  // namespace troupe::jobs
