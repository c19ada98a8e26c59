// part_request: how a thread without work asks the owner of a deque for its oldest part.
//
// A searcher that finds parts in a deque writes a request into the word beside it. The owner takes
// its oldest part and answers with it, at its next fork or when it checks the clock. No processor
// is interrupted, and the part costs two cache lines. A searcher whose patience is over withdraws
// its request, and asks other owners; job_pool::steal_part says when it takes a part itself, by a
// membarrier (work_deque::steal).
// Owner: answer. Searchers: ask, then await; one of them is let in.
// Invariants
//   Q1  a part with which the owner answers is taken by the searcher that asks, and by no other
//       thread.
//   Q2  that searcher sees all that was written before the part was pushed.
//   Q3  the owner answers each request at most once, and none that was withdrawn.
// Protocol and the losing interleavings: docs/protocols/fork_join.md.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::jobs {

// Tree: a searcher may ask for only parts within one tree, which outlives the request.
template <class Item, class Tree, class Atomics>
class part_request {
 public:
  // Searcher. False when another searcher asks. `within`: null for any part.
  bool ask(const Tree* within) noexcept {
    std::uintptr_t seen = unasked;
    // order: relaxed (both)  publishes nothing; the owner compares the tree's address only
    return word_.compare_exchange_strong(seen, request_for(within), std::memory_order_relaxed,
                                         std::memory_order_relaxed);
  }

  struct answered {
    bool by_owner = false;  // else the request was withdrawn
    Item* part = nullptr;   // null: the owner has none that is wanted
  };
  // Searcher, after ask() returned true: awaits the answer for `Atomics::patience`.
  answered await(const Tree* within) noexcept {
    for (typename Atomics::patience left; !left.is_over();) {
      // order: acquire  sees the part (Q2); pairs with answer/release
      const std::uintptr_t seen = word_.load(std::memory_order_acquire);
      if ((seen & asked) == 0) return take(seen);
    }
    std::uintptr_t seen = request_for(within);
    // order: acquire (both)  the failure sees the part, as above; the success publishes nothing,
    // but some compilers refuse a weaker order for it
    if (word_.compare_exchange_strong(seen, unasked, std::memory_order_acquire,
                                      std::memory_order_acquire))
      return {};
    return take(seen);
  }

  // Owner: whether a searcher asks; a hint.
  bool is_asked() const noexcept {
    // order: relaxed  a hint
    return (word_.load(std::memory_order_relaxed) & asked) != 0;
  }

  // Owner: answers the searcher, if a request waits, with the oldest part of the deque for which
  // `wants(part, tree)` holds.
  template <class Deque, class Wants>
  void answer(Deque& deque, const Wants& wants) noexcept {
    // order: relaxed  only the tree's address is used
    std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & asked) == 0) return;
    const auto* const within = reinterpret_cast<const Tree*>(seen & ~asked);
    deque.give([&](const Item& part) { return wants(part, within); },
               [&](Item* part) {
                 const auto reply =
                     part == nullptr ? refused : reinterpret_cast<std::uintptr_t>(part);
                 // order: release  publishes the part (Q2); pairs with await/acquire. On failure
                 // the searcher has withdrawn (Q3)
                 return word_.compare_exchange_strong(seen, reply, std::memory_order_release,
                                                      std::memory_order_relaxed);
               });
  }

 private:
  // The word: unasked; a tree's address with the bit `asked`; refused; or a part's address.
  static constexpr std::uintptr_t unasked = 0, asked = 1, refused = 2;
  static std::uintptr_t request_for(const Tree* within) noexcept {
    return reinterpret_cast<std::uintptr_t>(within) | asked;
  }
  // Searcher, whose word holds the answer.
  answered take(std::uintptr_t reply) noexcept {
    TROUPE_INVARIANT(reply != unasked, "Q1");
    // order: relaxed  the next searcher learns nothing by it
    word_.store(unasked, std::memory_order_relaxed);
    return {true, reply == refused ? nullptr : reinterpret_cast<Item*>(reply)};
  }

  typename Atomics::template atomic<std::uintptr_t> word_{unasked};
};

}  // namespace troupe::jobs
