#include "context/keep.hpp"

#include <utility>

#include "context/blocks/tally.hpp"
#include "troupe/base/error.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe::contexts {

void share::add() noexcept { share_count(count).add(); }
void share::drop() noexcept {
  if (share_count(count).drop()) free(*this);
}

keep::keep(context& within) noexcept : share(&keep::free), of(within) {}

// Also drops the shares of older keeps that end by this, in a loop instead of a recursion: there
// may be as many of them as snapshots.
void keep::free(share& self) noexcept {
  for (keep* next = static_cast<keep*>(&self); next != nullptr;) {
    keep& one = *next;
    contexts::finalize(one.finalizers, one.finalizers_end);
    for (block* each = one.blocks; each != nullptr;) {
      block& gone = *each;
      each = gone.newer;
      drop_block(gone);
    }
    if (one.part != nullptr) drop_block(*one.part);
    access::drop(one.of);
    next = one.base != nullptr && share_count(one.base->count).drop() ? one.base : nullptr;
    one.~keep();
    memory::deallocate(&one, sizeof(keep));
  }
}

namespace {

keep& ensure(context& of, keep*& list, std::atomic<std::uint32_t>& shares) {
  if (list == nullptr) {
    list = ::new (memory::allocate(sizeof(keep))) keep(of);
    share_count(shares).add();
  }
  return *list;
}

}  // namespace

void access::chain(keep& newest_of_level, keep* below) noexcept {
  keep* last = &newest_of_level;
  while (last->older != nullptr) last = last->older;
  if (last->base != nullptr || below == nullptr) return;
  below->add();
  last->base = below;
}

keep& access::keep_now(context& of, bool since_snapshot) {
  if (of.discarding_) {
    throw usage_error(
        "troupe: persist: in a destructor that a rollback or a context's end calls; what is "
        "discarded cannot be kept");
  }
  keep& top = ensure(of, of.keeps_, of.shares_);
  if (since_snapshot) return top;
  keep* upper = &top;
  for (snapshot* below = of.newest_; below != nullptr; below = below->older_) {
    keep& lower = ensure(of, below->keeps_, of.shares_);
    chain(*upper, &lower);
    upper = &lower;
  }
  return top;
}

bool access::leave_to_keeps(context& of, const mark& since) noexcept {
  keep* all = std::exchange(of.keeps_, nullptr);
  keep* held = nullptr;  // keeps that others hold, oldest first
  while (all != nullptr) {
    keep& one = *all;
    all = one.older;
    // The newest keep goes first: its share of an older one goes with it.
    if (share_count(one.count).alone()) {
      keep::free(one);
    } else {
      one.older = held;
      held = &one;
    }
  }
  if (held == nullptr) return false;

  // The oldest keep gets all the memory: the newer ones have it as their base, directly or
  // indirectly.
  of.trim();
  held->blocks = since.in->newer;
  for (block* one = held->blocks; one != nullptr; one = one->newer) one->older = nullptr;
  held->part = since.in;
  share_count(since.in->shares).add();
  held->finalizers = of.finalizers_;
  held->finalizers_end = since.finalizers;

  // The context may no longer use the rest of this block, until the block goes back to the pool.
  since.in->newer = nullptr;
  since.in->end = since.at;
  of.block_ = of.last_ = since.in;
  of.at_ = of.end_ = since.at;
  of.finalizers_ = since.finalizers;
  count(&tally::rollbacks_kept, 1);
  while (held != nullptr) {
    keep& one = *held;
    held = one.older;
    one.drop();
  }
  return true;
}

void access::drop(context& of) noexcept {
  if (!share_count(of.shares_).drop()) return;
  if (!of.open_) count(&tally::persisted, -1);
  block& first = *(reinterpret_cast<block*>(&of) - 1);
  of.~context();
  drop_block(first);
}

share& keep_whole(context& of) {
  keep& held = access::keep_now(of, false);
  held.add();
  return held;
}

share& keep_since_snapshot(context& of) {
  keep& held = access::keep_now(of, true);
  held.add();
  return held;
}

}  // namespace troupe::contexts
