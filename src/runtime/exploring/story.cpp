#include "runtime/exploring/story.hpp"

#include <algorithm>
#include <cstdlib>
#include <istream>
#include <set>
#include <string_view>

#include "runtime/exploring/source_lines.hpp"

namespace troupe {

using sched::exploring::hold;
using sched::exploring::story_event;
using sched::exploring::story_kind;

void story::note(const story_event& event) {
  switch (event.kind) {
    case story_kind::module:
      modules_.push_back(event.text);
      break;
    case story_kind::spawned:
      classes_[event.actor] = event.text;
      break;
    case story_kind::sent:
      last_sent_ = &sent_[{event.actor, event.text}].emplace_back(sent{running_, event.callers});
      break;
    case story_kind::begun:
      begin(event);
      break;
    case story_kind::ended:
      running_ = none;
      break;
    case story_kind::waits:
      wait(event);
      break;
    case story_kind::outside:
      if (running_ == none) outside_[steps_.size()] = event.text;
      break;
    case story_kind::broken:
      // after a turn, the handler that ended last has broken it
      if (failing_ == none) failing_ = running_ != none ? running_ : steps_.size() - 1;
      break;
    case story_kind::fault:
      faults_.push_back({event.text, event.turn, running_, event.callers});
      break;
  }
}

void story::read(std::istream& lines) {
  story_event event;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    if (sched::exploring::read_event(line, event)) note(event);
  }
}

// GCC 12 places a call in a co_await at the end of the coroutine: it takes the line of the wait.
void story::wait(const story_event& event) {
  const auto last = last_of_actor_.find(event.actor);
  if (last == last_of_actor_.end()) return;
  steps_[last->second].awaits = event.text;
  if (!event.place.empty()) steps_[last->second].awaits += " at " + event.place;
  if (running_ == last->second && last_sent_ != nullptr && event.text.starts_with("the answer of"))
    last_sent_->asked_at = event.place;
}

void story::begin(const story_event& event) {
  step next{.method = event.text, .actor = event.actor, .turn = event.turn, .id = event.id};
  if (const auto last = last_of_actor_.find(event.actor); last != last_of_actor_.end()) {
    next.earlier = last->second;
    if (steps_[next.earlier].method == next.method) steps_[next.earlier].wait_is_over = true;
  }
  const auto found = sent_.find({event.actor, event.text});
  if (found != sent_.end() && !found->second.empty()) {
    next.by = std::move(found->second.front());
    found->second.pop_front();
  } else {
    find_waker(next, event.ready_after);
  }
  last_sent_ = nullptr;
  running_ = steps_.size();
  last_of_actor_[event.actor] = running_;
  steps_.push_back(std::move(next));
}

void story::find_waker(step& next, std::uint64_t ready_after) const {
  next.continues = true;
  std::size_t waker = steps_.size();
  while (waker != 0 && steps_[waker - 1].turn > ready_after) --waker;
  if (const auto outside = outside_.find(waker); outside != outside_.end()) {
    next.outside = outside->second;
    return;
  }
  if (waker == 0 || steps_[waker - 1].turn != ready_after) return;
  if (steps_[waker - 1].actor != next.actor) next.by.sender = waker - 1;
}

// The handlers from which the story goes back: the one that fails, or those whose waits the failure
// names, or the last one.
std::vector<std::size_t> story::ends(const std::string& failure) const {
  if (steps_.empty()) return {};
  if (failing_ != none) return {failing_};
  std::vector<std::size_t> found = waits_of(failure);
  if (found.empty()) found.push_back(steps_.size() - 1);
  return found;
}

// "Stock #3 in Stock::write waits at shop.cpp:7 for ..."
std::vector<std::size_t> story::waits_of(const std::string& failure) const {
  std::set<std::size_t> found;
  for (std::size_t at = 0; (at = failure.find(" #", at)) != std::string::npos; ++at) {
    const char* const digits = failure.c_str() + at + 2;
    char* end = nullptr;
    const std::uint64_t actor = std::strtoull(digits, &end, 10);
    if (end == digits || std::string_view(end).substr(0, 4) != " in ") continue;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if (steps_[i].actor != actor || steps_[i].awaits.empty()) continue;
      found.insert(i);
      break;
    }
  }
  return {found.begin(), found.end()};
}

std::vector<bool> story::past(const std::vector<std::size_t>& ends) const {
  std::vector<bool> found(steps_.size());
  for (const std::size_t end : ends) found[end] = true;
  for (std::size_t i = found.size(); i-- > 0;) {
    if (!found[i]) continue;
    for (const std::size_t cause : {steps_[i].by.sender, steps_[i].earlier}) {
      if (cause != none) found[cause] = true;
    }
  }
  return found;
}

std::string story::actor_text(std::uint64_t actor) const {
  const auto known = classes_.find(actor);
  return (known == classes_.end() ? std::string("actor") : known->second) + " #" +
         std::to_string(actor);
}

// Makes a told_story of the causal past.
class story_teller {
 public:
  story_teller(const story& whole, const std::vector<hold>& holds, const story& without)
      : whole_(whole), holds_(holds), without_(without) {}

  told_story tell(const std::string& failure) {
    const std::vector<std::size_t> ends = whole_.ends(failure);
    const std::vector<bool> past = whole_.past(ends);
    const auto count = static_cast<std::size_t>(std::ranges::count(past, true));
    std::size_t left_out = told_.left_out = count - std::min(count, told_max);
    for (std::size_t i = 0; i < past.size(); ++i) {
      if (!past[i]) continue;
      if (left_out != 0) {
        --left_out;
      } else {
        add(i);
      }
    }
    for (const std::size_t end : ends) {
      const auto place = places_.find(end);
      if (place == places_.end()) continue;
      told_message& message = told_.messages[place->second];
      message.waits_for = whole_.steps_[end].awaits;
      message.fails = message.waits_for.empty();
    }
    add_waiting();
    for (const story::failed_call& failed : whole_.faults_) add_fault(failed);
    name_lines();
    return std::move(told_);
  }

 private:
  static constexpr std::size_t told_max = 30, waiting_max = 10, none = story::none;

  std::size_t actor_of(std::uint64_t actor) {
    const auto [found, is_new] = lanes_.try_emplace(actor, told_.actors.size());
    if (is_new) told_.actors.push_back(whole_.actor_text(actor));
    return found->second;
  }

  told_message made(const std::string& method, std::uint64_t actor, const story::sent& by) {
    told_message message;
    message.method = method;
    if (by.sender != none) {
      const story::step& sender = whole_.steps_[by.sender];
      message.sender = actor_of(sender.actor);
      message.cause_turn = sender.turn;
      if (const auto cause = places_.find(by.sender); cause != places_.end())
        message.cause = cause->second;
    }
    message.receiver = actor_of(actor);
    message.place = by.asked_at;
    callers_.push_back(message.place.empty() ? by.callers : std::vector<story::code_address>());
    return message;
  }

  void add(std::size_t nth) {
    const story::step& step = whole_.steps_[nth];
    told_message message = made(step.method, step.actor, step.by);
    message.turn = step.turn;
    message.continues = step.continues;
    message.by = step.outside;
    if (!step.wait_is_over) message.waits_for = step.awaits;
    message.is_held = std::ranges::any_of(
        holds_, [&](const hold& held) { return held.is_turn() && held.held == step.id; });
    if (message.is_held) message.otherwise = otherwise(without_step(step.id));
    places_[nth] = told_.messages.size();
    told_.messages.push_back(std::move(message));
  }

  std::size_t without_step(const story::turn_id& id) const {
    for (std::size_t i = 0; i < without_.steps_.size(); ++i) {
      if (without_.steps_[i].id == id) return i;
    }
    return none;
  }

  // Where the schedule without holds runs that step.
  std::string otherwise(std::size_t nth) const {
    if (nth == none) return "";
    std::string text = "in turn " + std::to_string(without_.steps_[nth].turn);
    if (nth + 1 == without_.steps_.size()) return text;
    const story::step& next = without_.steps_[nth + 1];
    return text + ", before " + next.method + " of " + without_.actor_text(next.actor);
  }

  // The messages that were sent and not handled; held ones are the first.
  void add_waiting() {
    std::set<std::pair<std::uint64_t, std::string>> held;
    for (const hold& kept : holds_) {
      const std::size_t nth = kept.is_turn() ? without_step(kept.held) : none;
      if (nth == none || is_told(kept)) continue;
      const story::step& step = without_.steps_[nth];
      const auto found = whole_.sent_.find({step.actor, step.method});
      if (found == whole_.sent_.end() || found->second.empty()) continue;
      if (!held.insert(found->first).second) continue;
      told_message message = made(step.method, step.actor, found->second.front());
      message.is_held = true;
      message.otherwise = otherwise(nth);
      told_.messages.push_back(std::move(message));
    }
    std::size_t count = held.size();
    for (const auto& [receiver, senders] : whole_.sent_) {
      if (senders.empty() || held.contains(receiver) || receiver.second == "unreferenced") continue;
      if (count++ >= waiting_max) break;
      told_.messages.push_back(made(receiver.second, receiver.first, senders.front()));
    }
  }

  void add_fault(const story::failed_call& failed) {
    told_fault told{.text = failed.text, .turn = failed.turn};
    if (failed.running != none) {
      const story::step& step = whole_.steps_[failed.running];
      told.handler = step.method + " of " + whole_.actor_text(step.actor);
    }
    told_.faults.push_back(std::move(told));
    callers_.push_back(failed.callers);
  }

  bool is_told(const hold& kept) const {
    return std::ranges::any_of(whole_.steps_,
                               [&](const story::step& step) { return step.id == kept.held; });
  }

  void name_lines() {
    const std::vector<std::string> places = places_of(whole_.modules_, callers_);
    const std::size_t messages = told_.messages.size();
    for (std::size_t i = 0; i < messages; ++i) {
      if (told_.messages[i].place.empty()) told_.messages[i].place = places[i];
    }
    for (std::size_t i = messages; i < places.size(); ++i)
      told_.faults[i - messages].place = places[i];
  }

  const story& whole_;
  const std::vector<hold>& holds_;
  const story& without_;
  told_story told_;
  std::map<std::uint64_t, std::size_t> lanes_;             // of actors
  std::map<std::size_t, std::size_t> places_;              // of steps, in told_.messages
  std::vector<std::vector<story::code_address>> callers_;  // of the messages, then of the faults
};

told_story story::tell(const std::string& failure, const std::vector<hold>& holds,
                       const story& without) const {
  return story_teller(*this, holds, without).tell(failure);
}

namespace {

std::string sender_text(const told_story& told, const told_message& message) {
  std::string text =
      message.sender == told_message::none
          ? "the program"
          : told.actors[message.sender] + " in turn " + std::to_string(message.cause_turn);
  if (!message.place.empty()) text += " at " + message.place;
  return text;
}

std::string reason_of(const told_story& told, const told_message& message) {
  if (!message.continues) return ", sent by " + sender_text(told, message);
  if (!message.by.empty()) return ", continued by " + message.by;
  if (message.sender == told_message::none) return ", continued";
  return ", continued by " + sender_text(told, message);
}

std::string line_of(const told_story& told, const told_message& message) {
  std::string text =
      message.turn == 0 ? "  not handled yet: " : "  turn " + std::to_string(message.turn) + ": ";
  text += message.method + " of " + told.actors[message.receiver] + reason_of(told, message);
  if (message.is_held) text += message.turn == 0 ? "; it is held" : "; it was held";
  if (!message.otherwise.empty()) text += ", and runs otherwise " + message.otherwise;
  if (!message.waits_for.empty()) text += "; it waits for " + message.waits_for;
  return text + '\n';
}

}  // namespace

std::string text_of(const told_fault& fault) {
  std::string text = "in turn " + std::to_string(fault.turn);
  if (!fault.handler.empty()) text += ", in " + fault.handler;
  if (!fault.place.empty()) text += (fault.handler.empty() ? ", at " : " at ") + fault.place;
  return text + ": " + fault.text;
}

std::string text_of(const told_story& told) {
  std::string text;
  if (told.left_out != 0) text = "  (" + std::to_string(told.left_out) + " earlier ones)\n";
  std::size_t next = 0;
  for (const told_message& message : told.messages) {
    // messages without a turn come last
    const std::uint64_t turn = message.turn == 0 ? UINT64_MAX : message.turn;
    for (; next < told.faults.size() && told.faults[next].turn < turn; ++next)
      text += "  fault " + text_of(told.faults[next]) + '\n';
    text += line_of(told, message);
  }
  for (; next < told.faults.size(); ++next) text += "  fault " + text_of(told.faults[next]) + '\n';
  return text;
}

}  // namespace troupe
