// The rare operations of fork frames, and the outermost forks.
#include "troupe/jobs/fork_frame.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/atomics.hpp"
#include "base/clock.hpp"
#include "jobs/forks/looks.hpp"
#include "jobs/forks/thread_fork_tree.hpp"
#include "jobs/pool/job_pool.hpp"
#include "jobs/pool/run.hpp"
#include "jobs/waits/waiting_threads.hpp"
#include "troupe/base/error.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/result.hpp"

namespace troupe::jobs {
namespace {

// Fork frames nest on a stack up to this depth; deeper ones wait until it is free.
constexpr std::size_t stack_max = 128 << 10;  // bytes
// At most this many forks go by without a look: when short parts are followed by long ones, a look
// comes late.
constexpr std::int32_t forks_a_look_max = 512, sim_forks_a_look = 7;

}  // namespace

bool fork_atomics::light_fences_suffice() noexcept { return base::asymmetric::kernel_fences(); }
bool fork_atomics::heavy_fence() noexcept { return base::asymmetric::heavy(); }
void fork_atomics::wait_a_little(int spin) noexcept { base::std_atomics::wait_a_little(spin); }

void fork_tree::cancel() noexcept { root.mark(fork_join::state::cancelled); }

bool fork_join::mark(state as) noexcept {
  state seen = state::fine;
  // order: relaxed (both)  the count of the parts publishes it to the thread that throws it; for
  // others a hint
  if (!status.compare_exchange_strong(seen, as, std::memory_order_relaxed)) return false;
  tree->outermost->failures.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void fork_join::fail(std::exception_ptr failure) noexcept {
  if (mark(state::failed)) {
    std::construct_at(&error, std::move(failure));
  } else {
    tasks::report_dropped(std::move(failure));
  }
}

void refuse_begun_work() {
  throw usage_error(
      "troupe: work: it was moved from, or has begun already; make another one by calling the "
      "coroutine again");
}

void refuse_work_without_value() {
  throw usage_error(
      "troupe: work: take: it has no value: co_await fork(std::span(works)) first; one that threw, "
      "was dropped when another one threw, or "
      "was moved from has none");
}

namespace {
[[noreturn]] void throw_cancelled() {
  throw cancelled(
      "troupe: fork: it was cancelled: another part has failed, or the runtime was stopped");
}
}  // namespace

void fork_join::throw_status() {
  // order: relaxed (both)  after the end of all parts
  const state how = status.load(std::memory_order_relaxed);
  // without a parent the tree may be destroyed by now
  if (parent != nullptr) tree->failures.fetch_sub(1, std::memory_order_relaxed);
  if (how == state::no_memory) throw std::bad_alloc();
  if (how == state::cancelled) throw_cancelled();
  const std::exception_ptr failure = std::exchange(error, nullptr);
  std::destroy_at(&error);
  std::rethrow_exception(failure);
}

bool fork_join::is_cancelled() const noexcept {
  for (const fork_join* at = this;;) {
    // order: relaxed  a hint
    if (at->status.load(std::memory_order_relaxed) != state::fine) return true;
    if (at->parent == nullptr && at->tree->within == nullptr) return false;
    at = at->parent == nullptr ? &at->tree->within->root : at->parent->within;
  }
}

// All fork frames on this stack rest, the forker too; unless the parts that the forker saw end were
// the last. True when it rests.
bool fork_join::leave(fork_frame& forker, std::uint32_t ended) noexcept {
  fork_worker_state& on = *forker.worker;
  // first, since another thread may resume it at once
  const bool before = std::exchange(forker.rested, true);
  on.leaving = true;
  if (!left.end(ended + 1)) return true;
  forker.rested = before;
  on.leaving = false;
  return false;
}

fork_worker_state::fork_worker_state(job_pool* pool, fork_deques& parts, bool slices) noexcept
    : deques(parts),
      stack_end(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - stack_max),
      // order: relaxed  the thread's own, but for hints
      outer_stack_end_(parts.stack_end.load(std::memory_order_relaxed)),
      pool_(pool),
      slices_(slices),
      asked_(slices ? 0 : forks_of_fresh_part),
      began_ns_(base::now_ns()),
      looked_ns_(began_ns_) {
  deques.stack_end.store(stack_end, std::memory_order_relaxed);  // order: relaxed  as above
}

fork_worker_state::~fork_worker_state() {
  deques.stack_end.store(outer_stack_end_, std::memory_order_relaxed);  // order: relaxed  as above
}

void fork_worker_state::answer() noexcept {
  if (pool_ == nullptr) return;
  deques.stack_end.store(stack_end, std::memory_order_relaxed);  // order: relaxed  as above
  pool_->answer(deques);
}

void fork_worker_state::run(fork_frame& part) noexcept {
  tree = part.within->tree;
  const frame tree_frame(*tree);
  // order: relaxed  a hint
  if (pool_ != nullptr && pool_->discarding()) tree->cancel();
  if (tree->outermost->failures.load(std::memory_order_relaxed) != 0 &&
      part.within->is_cancelled()) {
    drop(part);
  } else {
    part.rested = true;
    next = &part;
  }
  while (fork_frame* current = std::exchange(next, nullptr)) {
    current->worker = this;
    current->handle().resume();
    leaving = false;
  }
}

void fork_worker_state::drop(fork_frame& part) noexcept {
  fork_join& fork = *part.within;
  // the failure may be further out; but this fork's forker would find a part undone
  fork.mark(fork_join::state::cancelled);
  part.handle().destroy();
  fork.end_part(*this);
}

bool fork_worker_state::slice_over() noexcept {
  if (!over && slices_ && pool_->slice_over(began_ns_)) over = true;
  return over;
}

// Called now and then: checks whether the visit must end, whether the runtime was stopped, and
// whether others should be asked to take part.
void fork_worker_state::check_and_share() noexcept {
  forks_left = forks_a_look_max;
  if (pool_ == nullptr) return;
  if (pool_->discarding()) tree->cancel();
  // order: relaxed  a hint: a thief has asked
  if (deques.stack_end.load(std::memory_order_relaxed) != stack_end) answer();
  if (pool_->is_simulated()) {
    forks_left = slices_ && slice_over() ? 0 : sim_forks_a_look;
    if (!deques.empty()) pool_->offer(*tree, 0);
    return;
  }
  const std::int64_t now = base::now_ns(), span = now - looked_ns_;
  looked_ns_ = now;
  const bool asked = asked_ > 0;
  if (asked) --asked_;
  if (span < look_ns_min && !asked) forks_a_look_ = std::min(2 * forks_a_look_, forks_a_look_max);
  if (span > look_ns_max)
    forks_a_look_ = std::max(static_cast<std::int32_t>(forks_a_look_ * look_ns_max / span), 1);
  forks_left = slice_over() || asked_ > 0 ? 0 : forks_a_look_;
  if (!deques.empty()) pool_->offer(*tree, now);
}

bool fork_worker_state::is_look_due(std::int64_t after_ns) const noexcept {
  return pool_ != nullptr && !pool_->is_simulated() && base::now_ns() - looked_ns_ >= after_ns;
}

namespace {

// For a fork that does not begin: destroys its parts.
void drop_all(std::span<fork_frame* const> parts) noexcept {
  for (fork_frame* part : parts) part->handle().destroy();
}

void push_all(fork_deques& deques, fork_join& root, std::span<fork_frame* const> parts) noexcept {
  for (std::size_t i = parts.size(); i-- > 0;) {
    parts[i]->within = &root;
    deques.forks.push(*parts[i]);
  }
}

}  // namespace

void run_tree_here(fork_join& root, std::span<fork_frame* const> parts) try {
  if (!may_block_here()) {
    throw usage_error("troupe: work::get: a handler must not hold its thread; co_await the work");
  }
  job_pool* const pool = job_pool::current();
  std::optional<fork_deques> own;
  if (pool == nullptr) own.emplace();
  std::optional<job_pool::working> works;
  if (pool != nullptr) works.emplace(*pool);
  fork_deques& deques = pool == nullptr ? *own : works->queue.parts;
  if (!deques.forks.reserve(parts.size())) throw std::bad_alloc();
  thread_fork_tree tree(root, pool, threads_of(pool));
  root.begin(&tree, nullptr, static_cast<std::uint32_t>(parts.size()));
  const deque_mark under(deques);
  push_all(deques, root, parts);
  if (pool != nullptr) pool->tree_begins();
  // the first part may be long
  if (pool != nullptr && parts.size() > 1) pool->offer(tree, base::now_ns());
  help(tree, deques, under);
  if (pool != nullptr) pool->tree_has_ended();
} catch (...) {
  drop_all(parts);
  throw;
}

// A tree for which a coroutine of an actor waits.
struct tree_of_task final : fork_tree, tasks::suspension {
  tree_of_task(fork_join& outermost, job_pool& pool)
      : fork_tree(outermost, &pool, pool.shares() ? pool.workers() : 1, &tell),
        suspension(&act_on),
        counted(pool.waits()) {}

  static void tell(fork_tree& base) noexcept {
    auto& self = static_cast<tree_of_task&>(base);
    const std::shared_ptr<wait_count> counts = std::move(self.counted);
    self.pool->tree_has_ended();
    self.over(tasks::outcome::arrived);
    counts->change(false);
  }
  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return "a fork";
    auto& self = static_cast<tree_of_task&>(*static_cast<suspension*>(base));
    if (act == sched::message_act::detach) {
      self.cancel();
      return nullptr;  // the tree ends when its parts have
    }
    if (act == sched::message_act::reclaim) self.pool->run_parts_left();
    return arrive(self, act);
  }
  std::shared_ptr<wait_count> counted;
};

void free_tree(tree_of_task& tree) noexcept {
  std::destroy_at(&tree);
  memory::deallocate(&tree, sizeof(tree_of_task));
}

namespace {

bool run_tree_on(job_pool* pool, fork_join& root, std::span<fork_frame* const> parts,
                 tasks::coroutine& awaiting, tree_of_task*& kept) try {
  if (pool == nullptr) throw usage_error("troupe: fork: the task runs in no runtime");
  kept = ::new (memory::allocate(sizeof(tree_of_task))) tree_of_task(root, *pool);
  root.begin(kept, nullptr, static_cast<std::uint32_t>(parts.size()));
  if (awaiting.call->cancelled) {
    kept->cancel();
    drop_all(parts);
    return false;
  }
  fork_deques& deques = pool->queue_here().parts;
  if (!deques.forks.reserve(parts.size())) throw std::bad_alloc();
  kept->counted->change(true);
  pool->tree_begins();
  kept->begin(awaiting);
  push_all(deques, root, parts);
  pool->call_runner();
  return true;
} catch (...) {
  drop_all(parts);
  throw;
}

}  // namespace

bool run_tree_for(fork_join& root, std::span<fork_frame* const> parts, tasks::coroutine& awaiting,
                  tree_of_task*& kept) {
  job_pool* const pool = job_pool::current();
  if (pool == nullptr || !pool->is_serial()) return run_tree_on(pool, root, parts, awaiting, kept);
  if (awaiting.call->cancelled) {
    drop_all(parts);
    throw_cancelled();
  }
  const blocking_allowed allowed;
  run_tree_here(root, parts);
  return false;
}

}  // namespace troupe::jobs
