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
