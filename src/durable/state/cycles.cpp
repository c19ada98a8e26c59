#include "durable/state/cycles.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/invariant.hpp"
#include "troupe/durable/error.hpp"

namespace troupe::durable::parts {
namespace {

// From one actor over the asks of handlers to the other; empty: none leads there.
std::vector<const activation*> find_path(const activation& from, const activation& target) {
  std::vector<const activation*> path;
  std::unordered_set<const activation*> seen;
  const std::function<bool(const activation&)> leads_there = [&](const activation& at) {
    path.push_back(&at);
    seen.insert(&at);
    if (&at == &target) return true;
    for (const activation* const next : at.waits_for) {
      if (!seen.contains(next) && leads_there(*next)) return true;
    }
    path.pop_back();
    return false;
  };
  static_cast<void>(leads_there(from));
  return path;
}

[[maybe_unused]] bool waits_for_itself(const activation& actor) {
  return std::ranges::any_of(
      actor.waits_for, [&](const activation* asked) { return !find_path(*asked, actor).empty(); });
}

}  // namespace

void cycles::check(const activation& asker, const activation& asked) {
  TROUPE_INVARIANT(!waits_for_itself(asker), "C1");
  const std::vector<const activation*> path = find_path(asked, asker);
  if (path.empty()) return;
  std::string text =
      "troupe: durable: this ask would wait for itself: " + asker.kind.name + " " + asker.key;
  for (const activation* const next : path) text += " asks " + next->kind.name + " " + next->key;
  throw deadlock(text);
}

void cycles::end_looks() noexcept {
  TROUPE_INVARIANT(looks_, "C2");
  looks_ = false;
}

bool cycles::find_waiting_asks(std::vector<cycle_question>& waiting) {
  waiting.clear();
  bool any_elsewhere = false;
  for (const auto& [id, ask] : known_) {
    const bool is_elsewhere = ask->is(message_place::elsewhere);
    any_elsewhere |= is_elsewhere;
    // One that is in the inbox has run before, and is not taken back.
    if (ask->row.from != origin::nested || is_elsewhere || ask->stored_with != 0) continue;
    const activation* const actor = find_actor(ask->row.to);
    if (actor != nullptr && std::ranges::find(actor->waits, ask) != actor->waits.end())
      waiting.push_back({ask->row.to, id, id});
  }
  if (!any_elsewhere) end_looks();
  return any_elsewhere;
}

activation* cycles::find_actor(const actor_name& name) const {
  const kind_table* const kind = classes_.find(name.kind);
  return kind == nullptr ? nullptr : actors_.find(*kind, name.key);
}

cycle_steps cycles::follow(const cycle_question& question) const {
  cycle_steps found;
  const activation* const actor = find_actor(question.to);
  if (actor == nullptr) return found;
  const auto is_it = [&](const record_ref& ask) { return ask->row.id == question.ask; };
  if ((actor->handles != nullptr && is_it(actor->handles)) ||
      std::ranges::any_of(actor->waits, is_it)) {
    std::vector<const activation*> seen;
    follow_handler(*actor, question, seen, found);
  }
  return found;
}

void cycles::follow_handler(const activation& actor, const cycle_question& question,
                            std::vector<const activation*>& seen, cycle_steps& steps) const {
  if (actor.handles == nullptr || std::ranges::find(seen, &actor) != seen.end()) return;
  seen.push_back(&actor);
  for (const record_ref& ask : actor.handles->asks) {
    if (ask->asker != &actor) continue;  // it was answered
    if (ask->row.id == question.other) {
      steps.is_found = true;
    } else if (!ask->is(message_place::elsewhere)) {
      if (const activation* const next = find_actor(ask->row.to); next != nullptr)
        follow_handler(*next, question, seen, steps);
    } else if (question.nodes_left > 0) {
      steps.elsewhere.push_back(
          {ask->row.to, ask->row.id, question.other, question.nodes_left - 1});
    }
  }
}

}  // namespace troupe::durable::parts
