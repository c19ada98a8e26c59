#include "runtime/services/posted.hpp"

#include <memory>

#include "observe/counting/sampled_sends.hpp"
#include "task/running/running.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe {
namespace {

struct posted final : sched::runnable {
  actor::actor_system* system = nullptr;
  unique_function<void()> procedure;
};

void dispose(sched::runnable& item) noexcept {
  auto* self = static_cast<posted*>(&item);
  std::destroy_at(self);
  memory::deallocate(self, sizeof(posted));
}

sched::after_turn run(sched::runnable& item) {
  auto& self = static_cast<posted&>(item);
  if (!self.system->discarding()) {
    const tasks::inside_procedure here(*self.system);
    const observe::sampled_procedure sample;
    observe::trace(observe::event::post_begin, nullptr);
    try {
      self.procedure();
    } catch (...) {
      self.system->report(nullptr, nullptr, std::current_exception());
    }
  }
  if (!self.system->discarding()) observe::trace(observe::event::post_end, nullptr);
  // What the procedure holds is destroyed here, since dispose must not run user code
  // (runnable.hpp).
  self.procedure = nullptr;
  return sched::after_turn::gone;
}

bool deactivate(sched::runnable&) { return false; }
bool pending(const sched::runnable&) { return false; }

constexpr sched::runnable_vtable posted_type{&run, &deactivate, &pending, &dispose, &dispose};

}  // namespace

sched::runnable& make_posted(actor::actor_system& home, unique_function<void()> procedure) {
  auto& item = *::new (memory::allocate(sizeof(posted))) posted;
  item.type = &posted_type;
  item.system = &home;
  item.procedure = std::move(procedure);
  return item;
}

}  // namespace troupe
