#include "runtime/exploring/story.hpp"

#include <algorithm>
#include <new>

namespace troupe {

void story::mark() noexcept {
  if (failing_ == none) failing_ = running_;
}

story::story(const sched::exploring::execution& execution)
    : listener{&hear},
      execution_(execution),
      watched_before_(observe::is_watched(observe::watched::events)) {
  observe::listen_here(this);
  observe::watch(observe::watched::events);
}

story::~story() {
  if (!watched_before_) observe::unwatch(observe::watched::events);
  observe::listen_here(nullptr);
}

void story::hear(listener& self, observe::event kind, const char* what, std::uint64_t id) noexcept {
  try {
    static_cast<story&>(self).note(kind, what, id);
  } catch (const std::bad_alloc&) {  // the story has a gap
  }
}

void story::note(observe::event kind, const char* what, std::uint64_t id) {
  switch (kind) {
    case observe::event::spawned:
    case observe::event::turn_begin:
      classes_[id] = what;
      break;
    case observe::event::sent:
      sent_[{id, what}].push_back(running_);
      break;
    case observe::event::handle_begin:
      begin_step(what, id);
      break;
    case observe::event::handle_end:
      running_ = none;
      break;
    default:
      break;
  }
}

void story::begin_step(const char* method, std::uint64_t actor) {
  const auto last = last_of_actor_.find(actor);
  step begun{method, actor, execution_.turns, none,
             last == last_of_actor_.end() ? none : last->second};
  if (const auto sent = sent_.find({actor, method}); sent != sent_.end() && !sent->second.empty()) {
    begun.sender = sent->second.front();
    sent->second.pop_front();
  }
  running_ = steps_.size();
  last_of_actor_[actor] = running_;
  steps_.push_back(begun);
}

std::vector<bool> story::past() const {
  std::vector<bool> found(steps_.size());
  if (found.empty()) return found;
  found[failing_ == none ? found.size() - 1 : failing_] = true;
  for (std::size_t i = found.size(); i-- > 0;) {
    if (!found[i]) continue;
    for (const std::size_t cause : {steps_[i].sender, steps_[i].earlier}) {
      if (cause != none) found[cause] = true;
    }
  }
  return found;
}

std::string story::actor_text(std::uint64_t actor) const {
  const auto known = classes_.find(actor);
  return (known == classes_.end() ? std::string("actor") : std::string(known->second)) + " #" +
         std::to_string(actor);
}

bool story::was_held(std::uint64_t turn) const {
  if (turn == 0 || turn > execution_.seen.size()) return false;
  const auto& id = execution_.seen[turn - 1].id;
  return std::ranges::any_of(execution_.plan.holds,
                             [&](const auto& hold) { return !hold.connection && hold.held == id; });
}

std::string story::sender_text(std::size_t sender) const {
  if (sender == none) return "the program";
  return actor_text(steps_[sender].actor) + " in turn " + std::to_string(steps_[sender].turn);
}

// The messages that were sent and not handled: held ones are among them.
std::string story::waiting() const {
  constexpr int lines_max = 10;
  std::string text;
  int lines = 0;
  for (const auto& [receiver, senders] : sent_) {
    if (senders.empty() || lines++ >= lines_max) continue;
    text += "  not handled yet: " + receiver.second + " of " + actor_text(receiver.first) +
            ", sent by " + sender_text(senders.front()) + '\n';
  }
  return text;
}

std::string story::line_of(const step& step) const {
  std::string text =
      "  turn " + std::to_string(step.turn) + ": " + step.method + " of " + actor_text(step.actor);
  const bool continues = step.sender == none && step.earlier != none &&
                         steps_[step.earlier].method == std::string(step.method);
  text += continues ? ", continued" : ", sent by " + sender_text(step.sender);
  if (was_held(step.turn)) text += "; it was held";
  return text + '\n';
}

std::string story::text() const {
  constexpr std::size_t lines_max = 30;
  const std::vector<bool> told = past();
  std::size_t left_out = static_cast<std::size_t>(std::ranges::count(told, true));
  left_out -= std::min(left_out, lines_max);
  std::string text;
  if (left_out != 0) text = "  (" + std::to_string(left_out) + " earlier ones)\n";
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!told[i]) continue;
    if (left_out != 0) {
      --left_out;
    } else {
      text += line_of(steps_[i]);
    }
  }
  return text + waiting();
}

}  // namespace troupe
