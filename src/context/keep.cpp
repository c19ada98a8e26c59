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

keep::keep(context& kept) noexcept : share(&keep::free), kept_context(kept) {}

// Also drops the shares of older keeps that end by this, in a loop instead of a recursion: there
// may be as many of them as snapshots.
void keep::free(share& self) noexcept {
  for (keep* next = static_cast<keep*>(&self); next != nullptr;) {
    keep& freed = *next;
    contexts::finalize(freed.finalizers, freed.finalizers_end);
    for (block* each = freed.blocks; each != nullptr;) {
      block& gone = *each;
      each = gone.newer;
      drop_block(gone);
    }
    if (freed.part != nullptr) drop_block(*freed.part);
    access::drop(freed.kept_context);
    next = freed.base != nullptr && share_count(freed.base->count).drop() ? freed.base : nullptr;
    freed.~keep();
    memory::deallocate(&freed, sizeof(keep));
  }
}

share& keep_whole(context& owner) {
  keep& held = access::keep_now(owner, false);
  held.add();
  return held;
}

share& keep_since_snapshot(context& owner) {
  keep& held = access::keep_now(owner, true);
  held.add();
  return held;
}

}  // namespace troupe::contexts
