// keep: holds the memory that something persisted needs, from the first persist() after a snapshot
// on.
//
// As long as the context has that memory itself, a keep only counts. A rollback, or the context's
// end, that finds the count held by others leaves all memory since then to the keep, with the
// destructors that are still to be called; whoever drops the last share calls these and frees it.
// docs/protocols/escape.md has the argument.
//
// The keeps of one level, that is of the time between two snapshots, are in a list; each has the
// next older one for its base, so that it holds that, too. The oldest of a level has the newest of
// the level below, once something was persisted whole.
//
// Threads: the context's, but for the count. Whoever frees it has it alone.
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

  context& of;            // counted
  keep* older = nullptr;  // of the context's list for the same level
  keep* base = nullptr;   // counted: older memory, which what is persisted may refer to
  // What was left to it:
  block* blocks = nullptr;  // linked by `newer`
  block* part = nullptr;    // the end of this one; the rest is the context's
  finalizer* finalizers = nullptr;
  const finalizer* finalizers_end = nullptr;
};

// A place in a context; all that is newer is discarded, or left.
struct mark {
  block* in;
  std::byte* at;
  finalizer* finalizers;
};

struct access {
  // The keep for all that the context has now; since the newest snapshot only, or with all that is
  // older.
  static keep& keep_now(context& of, bool since_snapshot);
  // Lets all keeps of a level have those below for their base.
  static void chain(keep& newest_of_level, keep* below) noexcept;
  // Discards what is newer than the place: what was allocated since the newest snapshot.
  static void roll_back(context& of, const mark& since) noexcept;
  static void roll_back_newest(context& of) noexcept;  // and forgets the snapshot
  // False when nobody holds anything that was persisted since the newest snapshot.
  static bool leave_to_keeps(context& of, const mark& since) noexcept;
  static void finalize(context& of, const finalizer* down_to) noexcept;
  static void drop(context& of) noexcept;
  static void end(context& of) noexcept;
  static mark beginning(context& of) noexcept;
  static std::atomic<const void*>& runs_on(context& of) noexcept;
  static bool has_keeps(const context& of) noexcept;
  // Whether the object is newer than the newest snapshot.
  static bool is_since(const context& of, const void* object) noexcept;
  // A snapshot that is open, newer than `older` and older than `newer`; null when there is none.
  static const snapshot* between(const context& of, const void* older, const void* newer) noexcept;
};

inline void finalize(finalizer* newest, const finalizer* down_to) noexcept {
  while (newest != down_to) {
    finalizer& one = *newest;
    newest = one.older;
    one.destroy(one);
  }
}

}  // namespace troupe::contexts
