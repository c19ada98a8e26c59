// Circles of asks over several nodes. Those of one node are refused when the last ask is made
// (engine::check_circle). Over nodes nobody sees the whole: so a node that has asked others looks
// now and then for asks that wait behind a handler, and asks the nodes for which that handler
// waits, and those for which theirs wait, whether one of them is the handler that waits for the
// ask. Nobody in such a circle can go on, so what was true at each node when it was asked is true
// at the end. The ask did not run: it is taken back, and fails with `deadlock`.
#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "durable/engine/engine.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

// An ask that waits for less is not looked at.
constexpr std::chrono::milliseconds circle_look_every{500};

}  // namespace

// With the mutex held. An ask goes to another node.
void engine::need_circle_looks() {
  if (looks_for_circles_) return;
  looks_for_circles_ = true;
  try {
    start([](std::shared_ptr<engine> self) { return look_for_circles(std::move(self)); });
  } catch (...) {
    looks_for_circles_ = false;
    throw;
  }
}

// As long as answers of other nodes are waited for.
task<> engine::look_for_circles(std::shared_ptr<engine> self) {
  std::set<message_id> waited_before;
  std::vector<circle_question> waiting;
  for (;;) {
    co_await sleep_for(circle_look_every);
    if (!self->find_waiting_asks(waiting)) co_return;
    for (const circle_question& one : waiting) {
      if (!waited_before.contains(one.ask)) continue;
      auto asks = waits_for(self, one);
      if (co_await std::move(asks)) self->take_back(one.ask);
    }
    waited_before.clear();
    for (const circle_question& one : waiting) waited_before.insert(one.ask);
  }
}

// False: no answer of another node is waited for, and the looks end.
bool engine::find_waiting_asks(std::vector<circle_question>& waiting) {
  waiting.clear();
  guard held(*this);
  bool any_elsewhere = false;
  for (const auto& [id, one] : by_id_) {
    any_elsewhere |= one->is(message_place::elsewhere);
    // One that is in the inbox has run before, and is not taken back.
    if (one->what.from != origin::nested || one->is(message_place::elsewhere) ||
        one->stored_with != 0)
      continue;
    const activation* const at = find_actor(one->what.to);
    if (at != nullptr && std::ranges::find(at->waits, one) != at->waits.end())
      waiting.push_back({one->what.to, id, id});
  }
  looks_for_circles_ = any_elsewhere;
  return any_elsewhere;
}

// With the mutex held.
const activation* engine::find_actor(const actor_name& of) const {
  const kind_table* const kind = classes_.find(of.kind);
  if (kind == nullptr) return nullptr;
  return actors_.find(*kind, of.key);
}

task<bool> engine::waits_for(std::shared_ptr<engine> self, circle_question what) {
  circle_steps next;
  self->follow(what, next);
  if (next.is_found) co_return true;
  for (circle_question& one : next.elsewhere) {
    bool leads_back = false;
    try {
      auto asks = self->shards_.scope().waits_for(std::move(one));
      leads_back = co_await std::move(asks);
    } catch (const troupe::error&) {
      // It is not known.
    }
    if (leads_back) co_return true;
  }
  co_return false;
}

// The asks over which the one in question waits here.
void engine::follow(const circle_question& what, circle_steps& to) {
  guard held(*this);
  const activation* const at = find_actor(what.to);
  if (at == nullptr) return;
  const auto is_it = [&](const record_ref& one) { return one->what.id == what.ask; };
  if ((at->handles != nullptr && is_it(at->handles)) || std::ranges::any_of(at->waits, is_it)) {
    std::vector<const activation*> seen;
    follow_handler(*at, what, seen, to);
  }
}

// With the mutex held.
void engine::follow_handler(const activation& of, const circle_question& what,
                            std::vector<const activation*>& seen, circle_steps& to) const {
  if (of.handles == nullptr || std::ranges::find(seen, &of) != seen.end()) return;
  seen.push_back(&of);
  for (const record_ref& one : of.handles->asks) {
    if (one->asker != &of) continue;  // it was answered
    if (one->what.id == what.other) {
      to.is_found = true;
    } else if (!one->is(message_place::elsewhere)) {
      if (const activation* const next = find_actor(one->what.to); next != nullptr)
        follow_handler(*next, what, seen, to);
    } else if (what.nodes_left > 0) {
      to.elsewhere.push_back({one->what.to, one->what.id, what.other, what.nodes_left - 1});
    }
  }
}

// It has not begun; otherwise it stays.
void engine::take_back(const message_id& ask) {
  std::unique_ptr<answer_to> answer;
  std::string text = "troupe: durable: this ask would wait for itself, over other nodes: ";
  {
    guard held(*this);
    const auto known = by_id_.find(ask);
    if (known == by_id_.end() || known->second->stored_with != 0) return;
    const record_ref message = known->second;
    const actor_name& of = message->what.to;
    if (find_actor(of) == nullptr) return;
    activation& at = actor_of(*message->kind, of.key);
    if (std::erase(at.waits, message) == 0) return;
    text += of.kind + " " + of.key;
    by_id_.erase(known);
    inbox_.leave(*message);
    end_wait(*message);
    answer = std::move(message->answer);
  }
  fail_all(answer, std::make_exception_ptr(deadlock(text)));
}

}  // namespace troupe::durable::parts
