// What is suspended, in words.
#include "actor/activation.hpp"
#include "actor/running.hpp"

namespace troupe::actor {
namespace {

std::string place_of(const std::source_location& where) {
  const std::string path = where.file_name();
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(where.line());
}

void describe(const cell& actor, const tasks::flow& flow, std::string& text) {
  text += "\n  ";
  text += actor.type->name;
  text += " in ";
  text += flow.call.act(nullptr, nullptr, message_act::describe);
  if (flow.waits == nullptr) text += " waits for something of its own";
  for (tasks::wait* one = flow.waits; one != nullptr; one = one->next_of_flow) {
    text += one == flow.waits ? " waits at " : " and at ";
    text += place_of(one->who->awaits_at);
    text += " for ";
    if (const tasks::ask_link* asked = tasks::asked_by(*one)) {
      text += asked->what;
      text += asked->method(nullptr, nullptr, message_act::describe);
    } else {
      text += one->act(one, nullptr, message_act::describe);
    }
  }
}

}  // namespace

std::string describe_suspended(system& home, std::size_t most) {
  std::string text;
  std::size_t found = 0;
  home.slots.for_each([&](void* slot) {
    cell& actor = *static_cast<cell*>(slot);
    const auto tell = [&](const tasks::flow& flow) {
      for (const tasks::wait* one = flow.waits; one != nullptr; one = one->next_of_flow) {
        if (one->excused) return;
      }
      if (++found <= most) describe(actor, flow, text);
    };
    const std::uintptr_t seen = mailbox(actor.word).look();
    if (mailbox::is_parked(seen)) tell(*mailbox::activation_under(seen).suspended);
    if (!has_extras(actor)) return;
    for (const tasks::flow* one = cell_extras::of(actor).flows; one != nullptr; one = one->next_call) tell(*one);
  });
  if (found > most) text += "\n  and " + std::to_string(found - most) + " more";
  return text;
}

}  // namespace troupe::actor
