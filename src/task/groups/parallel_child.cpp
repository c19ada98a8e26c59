#include "troupe/task/groups/parallel_child.hpp"

#include "task/running/running.hpp"

namespace troupe::tasks {

bool parallel_child_end::suspend(coroutine& awaiting) noexcept {
  begin(awaiting);
  if (state_.attach(*this)) return true;
  forget();
  return false;
}

void parallel_child_end::on_resolved(observer& self) noexcept {
  static_cast<parallel_child_end&>(self).over(outcome::arrived);
}

const char* parallel_child_end::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "the end of a parallel child of its scope";
  if (act == sched::message_act::detach) return nullptr;
  auto& self = static_cast<parallel_child_end&>(*static_cast<suspension*>(base));
  if (act != sched::message_act::reclaim || !self.state_.detach(self)) return arrive(self, act);
  self.finish_task();
  self.end();
  return nullptr;
}

// At the runtime's end, when no other thread runs turns: the task runs to its end here, within the
// end of the call that awaits it, and its actor finds it done. A task that never began holds only
// its arguments.
void parallel_child_end::finish_task() noexcept {
  // order: acquire  pairs with limited_branch::suspend/release
  async_call* const task = task_.running.load(std::memory_order_acquire);
  if (task == nullptr) return;
  async_call* const before = exchange_running(task);
  static_cast<void>(task->finish_now());
  static_cast<void>(exchange_running(before));
}

}  // namespace troupe::tasks
