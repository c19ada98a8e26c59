// The rare operations of shared loops: looking at the clock, giving parts away, waiting for these.
#include "troupe/jobs/shared_loop.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "jobs/forks/looks.hpp"
#include "jobs/forks/thread_fork_tree.hpp"
#include "jobs/pool/job_pool.hpp"
#include "jobs/pool/run.hpp"
#include "jobs/waits/waiting_threads.hpp"
#include "troupe/base/error.hpp"

namespace troupe::jobs {

constinit thread_local own_loops loops_here;

namespace {

// At most this many loops go by without a look: when short loops are followed by long ones, a look
// comes late.
constexpr std::int32_t looks_after_max = 512, sim_looks_after = 3;
// A round has this many iterations when looks are rarer than looks_after_of_long_rounds.
constexpr std::size_t long_round = 16;
constexpr std::int32_t looks_after_of_long_rounds = 64;
constexpr int walk_max = 1'000;  // how many outer loops are asked whether they have something left

constinit thread_local std::int64_t looked_ns = 0;

}  // namespace

// The tree of all parts that one loop gave. Its root counts the parts, and the loop itself until
// that waits.
struct loop_tree final : thread_fork_tree {
  loop_tree(const loop_segment& segment, fork_tree* outer) noexcept;
  fork_join parts;
};

// Loops that were begun in the same fork frame, or in the same job, or in plain code outside of
// any, are waited for and cancelled together.
struct loop_segment {
  loop_segment();
  loop_segment(const loop_segment&) = delete;
  loop_segment& operator=(const loop_segment&) = delete;
  ~loop_segment();

  job_pool* pool = nullptr;
  unsigned threads = 1;
  fork_tree* tree = nullptr;  // the innermost
  std::optional<job_pool::working> works;
  const own_loops before;
};

loop_tree::loop_tree(const loop_segment& segment, fork_tree* outer) noexcept
    : thread_fork_tree(parts, segment.pool, segment.threads) {
  within = outer;
  if (within != nullptr) outermost = within->outermost;
  parts.begin(this, nullptr, 1);
}

namespace {

void set_pace(own_loops& own, std::int64_t now) noexcept {
  const std::int64_t span = now - std::exchange(looked_ns, now);
  if (span < look_ns_min) own.looks_after = std::min(2 * own.looks_after, looks_after_max);
  if (span > look_ns_max)
    own.looks_after = std::max(static_cast<std::int32_t>(own.looks_after * look_ns_max / span), 1);
  own.round = own.looks_after < looks_after_of_long_rounds ? 1 : long_round;
}

// Whether no loop inside this one, at most walk_max away, has given parts.
[[maybe_unused]] bool none_inside_has_given(const shared_loop& loop) noexcept {
  int seen = 0;
  for (const shared_loop* at = loops_here.innermost; at != &loop; at = at->outer) {
    if (at == nullptr || at->tree != nullptr) return false;
    if (++seen == walk_max) break;
  }
  return true;
}

// Gives away half of a loop's remaining numbers. This thread keeps the one that it runs next.
void give_half(loop_segment& segment, shared_loop& loop, fork_deques& deques, bool begun) noexcept {
  const std::size_t left = loop.end - loop.next, half = (left + (begun ? 1 : 0)) / 2;
  TROUPE_INVARIANT(half <= left, "S1");
  if (half == 0 || !deques.loops.reserve(1)) return;
  if (loop.tree == nullptr) {
    TROUPE_INVARIANT(none_inside_has_given(loop), "S3");
    auto* fresh = new (std::nothrow) loop_tree(segment, segment.tree);
    if (fresh == nullptr) return;
    segment.tree = loop.tree = fresh;
    loop.newest_given = nullptr;
  }
  given_part* const given = loop.type.give(loop, loop.end - half, loop.end);
  if (given == nullptr) return;
  fork_join& parts = loop.tree->parts;
  parts.left.add();
  given->part->within = &parts;
  given->end = loop.end;
  given->older = loop.newest_given;
  loop.newest_given = given;
  loop.end -= half;
  loop.stop = std::min(loop.stop, loop.end);
  deques.newest_given = given;
  deques.loops.push(*given->part);
}

// The outermost loop that has something left. Loops outside of one that has given had nothing left
// when it gave, or are more than walk_max away.
shared_loop& find_outermost(shared_loop& innermost) noexcept {
  shared_loop* found = &innermost;
  int seen = 0;
  for (shared_loop* at = found; at != nullptr && ++seen != walk_max; at = at->outer) {
    if (at->next != at->end) found = at;
    if (at->tree != nullptr) break;
  }
  return *found;
}

// Whether no given part is left in the deque. While a thief looks at a part the deque seems empty:
// another given part would then lie above it, and would be taken back in its place.
bool has_none_given(fork_deques& deques) noexcept {
  return deques.newest_given == nullptr || deques.loops.is_empty();
}

// If there is work that others could do, puts some of it into this thread's deque, and offers it.
void give(own_loops& own, std::int64_t now) noexcept {
  loop_segment& segment = *own.segment;
  if (segment.threads == 1) return;
  fork_deques& deques = segment.works->queue.parts;
  if (deques.empty() && has_none_given(deques)) {
    shared_loop& from = find_outermost(*own.innermost);
    give_half(segment, from, deques, &from != own.innermost);
  }
  if (segment.tree != nullptr && !deques.empty()) segment.pool->offer(*segment.tree, now);
}

}  // namespace

loop_segment::loop_segment() : before(loops_here) {
  own_loops& own = loops_here;
  const frame* const top = this_stack.top;
  tree = top == nullptr ? nullptr : top->forks;
  pool = tree == nullptr ? job_pool::current() : tree->pool;
  if (pool != nullptr) {
    works.emplace(*pool);
    threads = tree == nullptr ? threads_of(pool) : tree->threads;
    if (pool->is_simulated() && pool->shares()) threads = 2;  // this thread takes its parts back
    if (threads > 1) {
      static_cast<void>(this_thread());  // giving must not throw
      pool->tree_begins();
    }
  }
  own.innermost = nullptr;
  own.segment = this;
  own.frame = top;
  own.left = 0;
}

loop_segment::~loop_segment() {
  own_loops& own = loops_here;
  own.innermost = before.innermost;
  own.segment = before.segment;
  own.frame = before.frame;
  own.left = before.left;
  if (threads > 1) pool->tree_has_ended();
}

void run_in_segment(void (*function)(void*), void* argument) {
  if (!may_block_here()) {
    throw usage_error(
        "troupe: shared_for: a handler must not hold its thread; co_await a work that calls it");
  }
  const loop_segment running_segment;
  function(argument);
}

void shared_loop::check_and_share() {
  own_loops& own = loops_here;
  const loop_segment& segment = *own.segment;
  if (segment.pool == nullptr) {
    own.left = std::numeric_limits<std::int32_t>::max();
    own.round = long_round;
    return;
  }
  // order: relaxed  a hint
  const bool failed = segment.tree != nullptr &&
                      segment.tree->outermost->failures.load(std::memory_order_relaxed) != 0 &&
                      segment.tree->root.is_cancelled();
  if (failed || segment.pool->discarding()) {
    throw cancelled(
        "troupe: shared_for: it was cancelled: another call has failed, or the runtime was "
        "stopped");
  }
  segment.pool->answer(segment.works->queue.parts);
  if (segment.pool->is_simulated()) {
    own.looks_after = sim_looks_after;
    own.round = 1;
    own.left = own.looks_after - 1;
    return give(own, 0);
  }
  const std::int64_t now = base::now_ns();
  set_pace(own, now);
  own.left = own.looks_after - 1;
  give(own, now);
}

bool shared_loop::go_on() {
  own_loops& own = loops_here;
  const bool taken_back = next == end;
  if (taken_back && !take_back()) return false;
  stop = end - next < own.round ? end : next + own.round;
  if (--own.left < 0 && !taken_back) check_and_share();
  return true;
}

// Takes back the part that the loop gave last, unless another thread has taken it.
bool shared_loop::take_back() noexcept {
  if (tree == nullptr || newest_given == nullptr) return false;
  fork_deques& deques = loops_here.segment->works->queue.parts;
  // the deque was empty when this loop, or a loop outside of it, gave
  if (deques.newest_given != newest_given) return false;
  deques.newest_given = nullptr;
  fork_frame* const frame = deques.loops.pop();
  if (frame == nullptr) return false;
  TROUPE_INVARIANT(frame == newest_given->part, "S4");
  frame->handle().destroy();
  tree->parts.left.end(1);  // never the last: the loop itself is counted
  given_part* const given = newest_given;
  newest_given = given->older;
  TROUPE_INVARIANT(next <= end && end < given->end, "S1");
  end = given->end;
  type.free(*given);
  return true;
}

// The loop's own iterations have all ended, or will not begin: waits for its parts.
void shared_loop::wait() noexcept {
  if (tree->parts.left.end(1)) return;
  fork_deques& deques = loops_here.segment->works->queue.parts;
  const deque_mark under(deques);
  help(*tree, deques, under);
}

void shared_loop::fail() {
  const leaves_given at_end(*this);
  if (tree == nullptr) throw;
  tree->parts.fail(std::current_exception());
  take_back();
  next = end;
  wait();
  throw_first();
  throw;  // never reached
}

bool shared_loop::join() try {
  wait();
  throw_first();
  return true;
} catch (...) {
  leave();
  throw;
}

void shared_loop::throw_first() {
  fork_join& parts = tree->parts;
  // order: relaxed (both)  after the end of all parts
  if (parts.status.load(std::memory_order_relaxed) == fork_join::state::fine) return;
  if (tree->within != nullptr) tree->outermost->failures.fetch_sub(1, std::memory_order_relaxed);
  parts.check();
}

void shared_loop::leave() noexcept {
  loops_here.innermost = outer;
  if (tree == nullptr) return;
  while (given_part* const part = newest_given) {
    newest_given = part->older;
    type.free(*part);
  }
  TROUPE_INVARIANT(tree->parts.left.is_zero(), "S2");
  TROUPE_INVARIANT(loops_here.segment->tree == tree, "S3");
  loops_here.segment->tree = tree->within;
  delete tree;
}

}  // namespace troupe::jobs
