#include "runtime/services/posted.hpp"

#include <memory>

#include "troupe/memory/block_pool.hpp"

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
  run_posted(*self.system, self.procedure);
  // The captures of the procedure are destroyed here, since dispose must not run user code
  // (runnable.hpp).
  const unique_function<void()> dropped(std::move(self.procedure));
  return sched::after_turn::gone;
}

constexpr sched::runnable_vtable posted_type{&run, &never_deactivate, &never_pending, &dispose,
                                             &dispose};

}  // namespace

bool never_deactivate(sched::runnable&) { return false; }
bool never_pending(const sched::runnable&) { return false; }

sched::runnable& make_posted(actor::actor_system& home, unique_function<void()> procedure) {
  auto& item = *::new (memory::allocate(sizeof(posted))) posted;
  item.type = &posted_type;
  item.system = &home;
  item.procedure = std::move(procedure);
  return item;
}

}  // namespace troupe
