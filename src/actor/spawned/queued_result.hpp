// queued_result: the result of a task that waits for its first turn, between the worker that begins
// it and a taker who goes.
//
// A taker who goes before the task has begun may free the state of its result at once: the task
// then runs as one whose result nobody can take. The word lies in a block that is never freed but
// may serve others by then (memory/stable_pool.hpp), where it holds another state, or something
// else that is no address of a state: the taker's own cannot come there as long as he has it.
// Invariants
//   Q1  one of the two has the state: take() returned it, or give_up() was true.
//   Q2  give_up() leaves alone what is none of its own.
// Word: std::atomic<std::uintptr_t>, or what a model has in its state.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::actor {

template <class State, class Word>
class queued_result {
 public:
  explicit queued_result(Word& word) noexcept : word_(word) {}

  // By the one who queues the task.
  // order: relaxed (all)  who gets the state has it from the queue, or with the future
  // order: relaxed  as above
  void set(State& of) noexcept { word_.store(as_word(of), std::memory_order_relaxed); }

  // By the one who begins a task of which no taker knows that it waits.
  // order: relaxed  as above
  State* look() const noexcept {
    return reinterpret_cast<State*>(word_.load(std::memory_order_relaxed));
  }
  // By the one who begins any other: null when the taker has gone.
  // order: relaxed  as above
  State* take() noexcept {
    return reinterpret_cast<State*>(word_.exchange(0, std::memory_order_relaxed));
  }

  // By the taker: true when the state is his to free.
  bool give_up(State& of) noexcept {
    std::uintptr_t seen = as_word(of);
    // order: relaxed  as above
    return word_.compare_exchange_strong(seen, 0, std::memory_order_relaxed);
  }

 private:
  static std::uintptr_t as_word(State& of) noexcept {
    return reinterpret_cast<std::uintptr_t>(&of);
  }
  Word& word_;
};

}  // namespace troupe::actor
