#include "actor/turn/running_handlers.hpp"

#include "task/running/running.hpp"

namespace troupe::actor {

std::string running_handlers(const actor_system& system) {
  std::string names;
  tasks::for_each_running(system, [&](const tasks::running_work& work) {
    if (!names.empty()) names += "; ";
    names += work.method(nullptr, nullptr, message_act::describe);
    if (work.name != nullptr && work.actor == nullptr) names += std::string(": ") + work.name;
    // The actor may have ended by now.
    if (const std::uint64_t id = work.actor == nullptr ? 0 : system.slots.find_number(work.actor);
        id != 0)
      names += " (#" + std::to_string(id) + ")";
  });
  return names.empty() ? "none" : names;
}

}  // namespace troupe::actor
