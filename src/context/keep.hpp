// keep: holds the memory that persisted objects need, from the first persist() after a snapshot on.
//
// As long as the context itself has that memory, a keep only counts its holders. When a rollback,
// or the end of the context, finds that others hold the keep, it leaves to the keep all memory that
// is newer than the snapshot, with the destructors that are still to run. The thread that drops the
// last share runs these destructors and frees the memory. The argument is in
// docs/protocols/escape.md.
//
// A level is the time between two snapshots. The keeps of one level are in a list. Each has the
// next older one as its base, so that it also holds that snapshot. Once an object was persisted
// together with older memory, the oldest keep of a level has the newest keep of the level below as
// its base.
//
// Threads: the context's thread, except for the count. The thread that frees a keep is its only
// user.
#pragma once

#include <atomic>
#include <cstdint>

#include "context/blocks/block.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/persist.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe::contexts {

struct keep final : share {
  explicit keep(context& within) noexcept;
  static void free(share& self) noexcept;

  context& kept_context;  // the keep has one share of it
  keep* older = nullptr;  // in the context's list for the same level
  // Older memory, which a persisted object may refer to. The keep has one share of it.
  keep* base = nullptr;
  // Memory that was left to this keep:
  block* blocks = nullptr;  // linked by `newer`
  block* part = nullptr;    // the end of this block; the rest belongs to the context
  finalizer* finalizers = nullptr;
  const finalizer* finalizers_end = nullptr;
};

// A position in a context. Everything newer is discarded, or left to keeps.
struct mark {
  contexts::block* block;
  std::byte* at;
  finalizer* finalizers;
};

// The access of this layer's parts to a context's private members (rollback.cpp).
struct access {
  // Returns the keep for everything that the context has now. since_snapshot: only for memory that
  // is newer than the newest snapshot; otherwise the keep also holds everything older.
  static keep& keep_now(context& context, bool since_snapshot);
  // Gives all keeps of a level the keeps of the level below as their base.
  static void chain(keep& newest_of_level, keep* below) noexcept;
  // Discards everything newer than `since`: the allocations since the newest snapshot.
  static void roll_back(context& context, const mark& since) noexcept;
  static void roll_back_newest(context& context) noexcept;  // and forgets the snapshot
  // Returns false when no object is held that was persisted since the newest snapshot.
  static bool leave_to_keeps(context& context, const mark& since) noexcept;
  static void finalize(context& context, const finalizer* down_to) noexcept;
  static void drop(context& context) noexcept;
  static void end(context& context) noexcept;
  static mark beginning(context& owner) noexcept;
  static std::atomic<const void*>& runs_on(context& context) noexcept;
  static bool has_keeps(const context& owner) noexcept;
  // In a context that was rolled back: whether it is as good as a new one. It is not if an object
  // was persisted in it: the object's memory was cut off from the context's block, or is shared.
  static bool is_as_new(const context& context) noexcept;
  // True when the object is newer than the newest snapshot.
  static bool is_since(const context& context, const void* object) noexcept;
  // Returns an open snapshot that is newer than `older` and older than `newer`; null when there is
  // none.
  static const snapshot* between(const context& context, const void* older,
                                 const void* newer) noexcept;
};

inline void finalize(finalizer* newest, const finalizer* down_to) noexcept {
  while (newest != down_to) {
    finalizer& finalizer = *newest;
    newest = finalizer.older;
    finalizer.destroy(finalizer);
  }
}

}  // namespace troupe::contexts
