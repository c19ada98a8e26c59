// rollback: the effect of a context's end, a rollback or a snapshot's end on the memory that is
// newer, and the part of it that persist() keeps. The functions are declared in context.hpp,
// snapshot.hpp and keep.hpp.
#include <functional>
#include <utility>

#include "base/invariant.hpp"
#include "context/blocks/block.hpp"
#include "context/blocks/poison.hpp"
#include "context/blocks/tally.hpp"
#include "context/keep.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe {

using contexts::access;
using contexts::block;

void owned_context::end(context& owner) noexcept { access::end(owner); }

void context::rollback(snapshot& target) {
  if (target.context_ != this) {
    throw usage_error(
        target.context_ == nullptr
            ? "troupe: rollback: a rollback to an older snapshot has ended this snapshot"
            : "troupe: rollback: the snapshot is of another context");
  }
  if (discarding_)
    throw usage_error(
        "troupe: rollback: in a destructor that a rollback or the context's end calls");
  // Rolls back level by level: each level has its own persisted objects and keeps its own memory
  // for them.
  while (newest_ != &target) [[unlikely]] access::roll_back_newest(*this);
  access::roll_back(*this, {target.block_, target.at_, target.finalizers_});
}

snapshot::snapshot(context& context) noexcept
    : context_(&context),
      older_(context.newest_),
      block_(context.block_),
      at_(context.at_),
      finalizers_(context.finalizers_),
      keeps_(std::exchange(context.keeps_, nullptr)) {
  context.newest_ = this;
}

snapshot::~snapshot() {
  if (context_ == nullptr) return;
  TROUPE_REQUIRE(context_->newest_ == this, "snapshots nest: one that is newer must end first");
  context_->newest_ = older_;
  // Objects that were persisted since this snapshot are newer than those before. From now on both
  // are one level.
  if (context_->keeps_ != nullptr) access::chain(*context_->keeps_, keeps_);
  contexts::keep** end = &context_->keeps_;
  while (*end != nullptr) end = &(*end)->older;
  *end = keeps_;
}

namespace contexts {

mark access::beginning(context& owner) noexcept {
  block* const first = reinterpret_cast<block*>(&owner) - 1;
  return {first, reinterpret_cast<std::byte*>(&owner + 1), nullptr};
}

void access::roll_back_newest(context& context) noexcept {
  snapshot& gone = *context.newest_;
  roll_back(context, {gone.block_, gone.at_, gone.finalizers_});
  context.newest_ = gone.older_;
  context.keeps_ = gone.keeps_;
  gone.context_ = nullptr;
}

void access::roll_back(context& context, const mark& since) noexcept {
  if (context.keeps_ != nullptr && leave_to_keeps(context, since)) [[unlikely]] {
    observe::trace(observe::event::context_kept, nullptr, context.number_);
    return;
  }
  if (context.finalizers_ != since.finalizers) finalize(context, since.finalizers);
  if constexpr (poisons) {
    for (block* block = since.block; block != context.block_->newer; block = block->newer) {
      std::byte* const from = block == since.block ? since.at : block->begin();
      poison(from, static_cast<std::size_t>(block->end - from));
    }
  }
  context.block_ = since.block;
  context.at_ = since.at;
  context.end_ = since.block->end;
  if (context.last_->total - context.block_->total > context.options_.retain_bytes) [[unlikely]] {
    context.trim_to(context.block_->total + context.options_.retain_bytes);
  }
}

void access::finalize(context& context, const finalizer* down_to) noexcept {
  context.discarding_ = true;
  // Runs the destructors one by one: a destructor may create objects, which are discarded in turn.
  while (context.finalizers_ != down_to) {
    finalizer& finalizer = *context.finalizers_;
    context.finalizers_ = finalizer.older;
    finalizer.destroy(finalizer);
  }
  context.discarding_ = false;
}

void access::end(context& context) noexcept {
  while (context.newest_ != nullptr) roll_back_newest(context);
  roll_back(context, beginning(context));
  context.trim();
  observe::trace(observe::event::context_ended, nullptr, context.number_);
  context.open_ = false;
  count(&tally::active, -1);
  count(&tally::persisted, 1);
  drop(context);
}

namespace {

keep& ensure(context& owner, keep*& list, std::atomic<std::uint32_t>& shares) {
  if (list == nullptr) {
    list = ::new (memory::allocate(sizeof(keep))) keep(owner);
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

keep& access::keep_now(context& context, bool since_snapshot) {
  if (context.discarding_) {
    throw usage_error(
        "troupe: persist: in a destructor that a rollback or a context's end calls; discarded "
        "memory cannot be kept");
  }
  keep& top = ensure(context, context.keeps_, context.shares_);
  if (since_snapshot) return top;
  keep* upper = &top;
  for (snapshot* below = context.newest_; below != nullptr; below = below->older_) {
    keep& lower = ensure(context, below->keeps_, context.shares_);
    chain(*upper, &lower);
    upper = &lower;
  }
  return top;
}

bool access::leave_to_keeps(context& context, const mark& since) noexcept {
  keep* all = std::exchange(context.keeps_, nullptr);
  keep* held = nullptr;  // keeps that others hold, oldest first
  while (all != nullptr) {
    keep& newest = *all;
    all = newest.older;
    // The newest keep goes first: its share of an older one goes with it.
    if (share_count(newest.count).alone()) {
      keep::free(newest);
    } else {
      newest.older = held;
      held = &newest;
    }
  }
  if (held == nullptr) return false;

  // The oldest keep gets all the memory: the newer ones have it as their base, directly or
  // indirectly.
  context.trim();
  held->blocks = since.block->newer;
  for (block* block = held->blocks; block != nullptr; block = block->newer) block->older = nullptr;
  held->part = since.block;
  share_count(since.block->shares).add();
  held->finalizers = context.finalizers_;
  held->finalizers_end = since.finalizers;

  // The context may no longer use the rest of this block, until the block goes back to the pool.
  since.block->newer = nullptr;
  since.block->end = since.at;
  context.block_ = context.last_ = since.block;
  context.at_ = context.end_ = since.at;
  context.finalizers_ = since.finalizers;
  count(&tally::rollbacks_kept, 1);
  while (held != nullptr) {
    keep& oldest = *held;
    held = oldest.older;
    oldest.drop();
  }
  return true;
}

void access::drop(context& context) noexcept {
  if (!share_count(context.shares_).drop()) return;
  if (!context.open_) count(&tally::persisted, -1);
  block& first = *(reinterpret_cast<block*>(&context) - 1);
  context.~context();
  drop_block(first);
}

// Positions of objects in a context, in the order in which the context was filled. A search walks
// through the blocks: it is for checks and rare calls.

namespace {

// Bytes up to the end of the object's block, and the object's address.
using position = std::pair<std::size_t, const std::byte*>;

bool is_before(const position& candidate, const position& other) noexcept {
  return candidate.first != other.first ? candidate.first < other.first
                                        : std::less<>()(candidate.second, other.second);
}

bool is_in(const block& block, const std::byte* address) noexcept {
  const auto* begin = reinterpret_cast<const std::byte*>(&block);
  return !std::less<>()(address, begin) && std::less<>()(address, begin + block.bytes);
}

// An object in none of the context's blocks counts as older than all others: its memory was left to
// a keep.
position find(const block* newest, const void* object) noexcept {
  const auto* address = static_cast<const std::byte*>(object);
  for (const block* block = newest; block != nullptr; block = block->older) {
    if (is_in(*block, address)) return {block->total, address};
  }
  return {0, address};
}

}  // namespace

bool access::is_since(const context& context, const void* object) noexcept {
  const snapshot* newest = context.newest_;
  return newest == nullptr ||
         !is_before(find(context.block_, object), {newest->block_->total, newest->at_});
}

const snapshot* access::between(const context& context, const void* older,
                                const void* newer) noexcept {
  const position first = find(context.block_, older), last = find(context.block_, newer);
  for (const snapshot* snapshot = context.newest_; snapshot != nullptr;
       snapshot = snapshot->older_) {
    const position at{snapshot->block_->total, snapshot->at_};
    if (is_before(first, at) && !is_before(last, at)) return snapshot;
  }
  return nullptr;
}

bool access::has_keeps(const context& owner) noexcept {
  return !share_count(const_cast<context&>(owner).shares_).alone();
}

bool access::is_as_new(const context& context) noexcept {
  return !has_keeps(context) && context.at_ != context.end_;
}

std::atomic<const void*>& access::runs_on(context& context) noexcept { return context.runs_on_; }

bool is_since_snapshot(const context& owner, const void* object) noexcept {
  return access::is_since(owner, object);
}

}  // namespace contexts

}  // namespace troupe
