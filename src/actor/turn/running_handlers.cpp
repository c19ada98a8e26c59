#include "actor/turn/running_handlers.hpp"

#include "task/running/running.hpp"

namespace troupe::actor {

std::string running_handlers(const actor_system& system) {
  std::string names;
  tasks::for_each_running(system, [&](const tasks::running_work& its) {
    if (!names.empty()) names += "; ";
    names += its.method(nullptr, nullptr, message_act::describe);
    if (its.what != nullptr && its.actor == nullptr) names += std::string(": ") + its.what;
    // The actor may have gone by now.
    if (const std::uint64_t id = its.actor == nullptr ? 0 : system.slots.find_number(its.actor);
        id != 0)
      names += " (#" + std::to_string(id) + ")";
  });
  return names.empty() ? "none" : names;
}

}  // namespace troupe::actor
