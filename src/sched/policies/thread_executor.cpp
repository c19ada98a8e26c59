#include "sched/policies/thread_executor.hpp"

namespace troupe::sched {

void thread_executor::submit(runnable& item) noexcept {
  alive_.enter();
  inbox_.push(item);
  poke();
}

// A runnable that enters the inbox after the last look at it notifies the parker.
void thread_executor::begin_wait_elsewhere() noexcept {
  if (!parker_.begin_wait_elsewhere() || !queue_.empty()) wakes_->ring();
}

void thread_executor::end_wait_elsewhere() noexcept {
  if (parker_.end_wait_elsewhere()) parker_.notify();
  wakes_->clear();
}

bool thread_executor::run_one() {
  runnable* item = pop();
  if (item == nullptr) return false;
  const runnable_vtable& type = *item->type;
  switch (type.run(*item)) {
    case after_turn::again:
      queue_.push(*item);
      break;
    case after_turn::quiet:
    case after_turn::waits:
      if (type.deactivate(*item)) {
        finished();
      } else {
        queue_.push(*item);
      }
      break;
    case after_turn::gone:
      type.dispose(*item);
      finished();
      break;
  }
  return true;
}

void thread_executor::discard_all() noexcept {
  while (runnable* item = pop()) {
    item->type->discard(*item);
    finished();
  }
}

runnable* thread_executor::pop() noexcept {
  // At every turn new arrivals go behind the runnables in the list: an actor that is never done
  // cannot keep them out.
  for (runnable* item = inbox_.take_all(); item != nullptr;) {
    runnable* next = item->next;
    queue_.push(*item);
    item = next;
  }
  return queue_.pop();
}

void thread_executor::finished() noexcept {
  if (alive_.leave()) runtime_.out_of_work();
}

}  // namespace troupe::sched
