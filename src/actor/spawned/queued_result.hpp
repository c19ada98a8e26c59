// queued_result: the result of a task that waits for its first turn, shared by the worker that
// begins the task and a taker that may leave before.
//
// A taker that leaves before the task has begun may free the state of the result at once; the task
// then runs as one whose result no taker can get. The word lies in a block of memory that is never
// freed, but by then may serve another purpose (memory/stable_pool.hpp): the word then holds
// another state, or a value that is no address of a state. It cannot hold the taker's own state,
// since that state lives for as long as the taker has it.
// Invariants
//   Q1  exactly one side gets the state: take() returned it, or give_up() was true.
//   Q2  give_up() does not change a word that holds another value than the taker's state.
// Word: std::atomic<std::uintptr_t>, or a model's own type.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::actor {

template <class State, class Word>
class queued_result {
 public:
  explicit queued_result(Word& word) noexcept : word_(word) {}

  // By the thread that queues the task.
  // order: relaxed (all)  both sides get the state itself from the queue, or with the future
  // order: relaxed  as above
  void set(State& state) noexcept { word_.store(as_word(state), std::memory_order_relaxed); }

  // By the worker that begins the task, when no taker can see this word.
  // order: relaxed  as above
  State* peek() const noexcept {
    return reinterpret_cast<State*>(word_.load(std::memory_order_relaxed));
  }
  // By the worker that begins the task, in all other cases: null when the taker has left.
  // order: relaxed  as above
  State* take() noexcept {
    return reinterpret_cast<State*>(word_.exchange(0, std::memory_order_relaxed));
  }

  // By the taker: true when the taker must free the state.
  bool give_up(State& state) noexcept {
    std::uintptr_t seen = as_word(state);
    // order: relaxed  as above
    return word_.compare_exchange_strong(seen, 0, std::memory_order_relaxed);
  }

 private:
  static std::uintptr_t as_word(State& state) noexcept {
    return reinterpret_cast<std::uintptr_t>(&state);
  }
  Word& word_;
};

}  // namespace troupe::actor
