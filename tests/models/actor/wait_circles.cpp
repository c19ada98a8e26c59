// The search for cycles of waits (src/actor/waits/two_pass_search.hpp, wait_graph.cpp): small
// programs of three actors, with each order of their steps and of the search's looks at one actor
// after the other.
//
// A step is atomic, because a search that looks at an actor holds it; parking.cpp models that. Each
// actor uses the memory of its waits again and again (D1).
// Checks that a wait is refused only when no order of further steps would end it (D2), and that it
// is ended once (D3). Also checks that a program in which nothing can happen any more continues
// after a search, until each actor has ended. So the search that comes after two waits that begin
// at the same instant finds both.
//
// mutation: one_look
// mutation: second_look_takes_all
// mutation: wait_keeps_mark
// mutation: first_look_does_not_mark
// mutation: refused_when_over
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actor/waits/two_pass_search.hpp"
#include "actor/waits/wait_graph.cpp"

namespace {

using troupe::actor::wait_node;

bool mutated(const char* by) {
  static const char* const chosen = std::getenv("MUTATION");
  return chosen != nullptr && std::strcmp(chosen, by) == 0;
}

// A step of a handler: it asks this actor, whose handler has steps of its own.
struct step {
  std::size_t callee;
  std::vector<step> handler{};
  bool limited = false;
};
using script = std::vector<step>;

constexpr std::size_t actors = 3;
constexpr int nobody = -1;

struct ask {
  const script* handler;
  bool resolved = false;
};

struct actor_state {
  std::vector<int> queue;  // the asks in its mailbox; a number below zero says what it was told
  const script* runs = nullptr;  // the handler of its turn
  std::size_t at = 0;
  int answers = nobody;
  // What its turn waits for.
  int awaits = nobody;
  bool limited = false, over = false;  // over: refused, or timed out
  unsigned seen_in = 0;
};

struct state {
  std::vector<ask> asks;
  actor_state all[actors];
  const script* told[actors]{};
  unsigned cancels = 0;  // code outside may still end this many waits

  bool is_waiting(std::size_t i) const { return all[i].awaits != nobody; }
  bool is_over(std::size_t i) const {
    return all[i].over || asks[static_cast<std::size_t>(all[i].awaits)].resolved;
  }

  // The steps that may come next: each function carries one out.
  std::vector<std::function<void(state&)>> steps() const {
    std::vector<std::function<void(state&)>> found;
    for (std::size_t i = 0; i < actors; ++i) {
      const actor_state& one = all[i];
      if (one.runs == nullptr) {
        if (!one.queue.empty()) found.emplace_back([i](state& of) { of.begin(i); });
      } else if (!is_waiting(i)) {
        found.emplace_back([i](state& of) { of.go(i); });
      } else if (is_over(i)) {
        found.emplace_back([i](state& of) { of.all[i].awaits = nobody; });
      } else if (one.limited || cancels != 0) {
        found.emplace_back([i](state& of) {
          of.all[i].over = true;
          of.cancels -= of.all[i].limited ? 0 : 1;
        });
      }
    }
    return found;
  }
  void begin(std::size_t i) {
    actor_state& one = all[i];
    const int first = one.queue.front();
    one.queue.erase(one.queue.begin());
    one.runs = first < 0 ? told[i] : asks[static_cast<std::size_t>(first)].handler;
    one.at = 0;
    one.answers = first < 0 ? nobody : first;
  }
  void go(std::size_t i) {
    actor_state& one = all[i];
    if (one.at == one.runs->size()) {
      if (one.answers != nobody) asks[static_cast<std::size_t>(one.answers)].resolved = true;
      one.runs = nullptr;
      return;
    }
    const step& next = (*one.runs)[one.at++];
    asks.push_back({&next.handler});
    one.awaits = static_cast<int>(asks.size()) - 1;
    one.limited = next.limited;
    one.over = false;
    if (!mutated("wait_keeps_mark")) one.seen_in = 0;
    all[next.callee].queue.push_back(one.awaits);
  }
  bool is_ended() const {
    for (const actor_state& one : all) {
      if (one.runs != nullptr || !one.queue.empty()) return false;
    }
    return true;
  }
  std::string key() const {
    std::string text;
    for (const actor_state& one : all) {
      text += '|' + std::to_string(reinterpret_cast<std::uintptr_t>(one.runs)) + ',' +
              std::to_string(one.at) + ',' + std::to_string(one.awaits) + (one.over ? "o" : "") +
              ':';
      for (const int mail : one.queue) text += std::to_string(mail) + ' ';
    }
    text += std::to_string(cancels);
    for (const ask& each : asks) text += each.resolved ? 'r' : '.';
    return text;
  }
  // Whether some order of further steps ends this wait.
  bool may_end(std::size_t i, int wait, std::set<std::string>& seen) const {
    if (all[i].awaits != wait || is_over(i)) return true;
    if (!seen.insert(key()).second) return false;
    for (const auto& next : steps()) {
      state after = *this;
      next(after);
      if (after.may_end(i, wait, seen)) return true;
    }
    return false;
  }
};

struct seen_before {};

// Goes through all ways to choose, one after the other. Stops where an earlier way has already
// been.
class choices {
 public:
  std::size_t choose(std::size_t of, const std::string& where) {
    if (at_ == made_.size()) {
      if (!seen_.insert(where).second) throw seen_before();
      made_.push_back({0, of});
    }
    return made_[at_++].first;
  }
  bool next() {
    at_ = 0;
    while (!made_.empty() && made_.back().first + 1 == made_.back().second) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().first;
    return true;
  }

 private:
  std::set<std::string> seen_;
  std::vector<std::pair<std::size_t, std::size_t>> made_;
  std::size_t at_ = 0;
};

struct violation {
  std::string what;
};

struct graph {
  std::vector<wait_node> nodes;
  std::vector<std::uint32_t> calls;
};

class world {
 public:
  world(state of, choices& by) : now(std::move(of)), by_(by), cancels_(now.cancels) {}

  // Lets any number of steps happen, perhaps none.
  void point() {
    for (;;) {
      const auto steps = now.steps();
      const std::size_t chosen = steps.empty() ? 0 : by_.choose(steps.size() + 1, where());
      if (chosen == 0) return;
      steps[chosen - 1](now);
    }
  }
  void run_to_rest() {
    for (auto steps = now.steps(); !steps.empty(); steps = now.steps())
      steps[by_.choose(steps.size(), where())](now);
  }
  std::size_t search() {
    ++number_;
    const std::size_t told = troupe::actor::search_in_two_passes(*this);
    progress_.clear();
    return told;
  }

  graph collect(bool second) {
    if (second && mutated("one_look")) return first_;
    progress_ = second ? "second" + progress_ : "first";
    graph seen;
    seen.nodes.resize(actors);
    std::vector<std::size_t> callee(actors, actors);
    std::vector<bool> waits(actors, false);
    for (std::uint32_t i = 0; i < actors; ++i) {
      point();
      seen.calls.push_back(i);
      actor_state& one = now.all[i];
      waits[i] = now.is_waiting(i);
      progress_ += waits[i] ? 'w' : '-';
      if (!waits[i] || one.limited || now.is_over(i)) continue;
      if (second && one.seen_in != number_ && !mutated("second_look_takes_all")) continue;
      if (!second && !mutated("first_look_does_not_mark")) one.seen_in = number_;
      callee[i] = (*one.runs)[one.at - 1].callee;
      progress_ += ' ' + std::to_string(i) + "for" + std::to_string(callee[i]);
    }
    progress_ += ';';
    for (std::uint32_t i = 0; i < actors; ++i) {
      if (callee[i] != actors && waits[callee[i]])
        seen.nodes[i] = {wait_node::waits::for_one, static_cast<std::uint32_t>(callee[i]), 0};
    }
    return first_ = seen;
  }
  void not_confirmed() {}
  std::size_t refuse(const graph&, const std::vector<std::vector<std::uint32_t>>& circles) {
    progress_ += "refuse";
    std::size_t refused = 0;
    for (const auto& circle : circles) {
      std::uint32_t told = 0;
      for (const std::uint32_t one : circle) told = std::max(told, one);
      point();
      actor_state& one = now.all[told];
      if (!now.is_waiting(told) || (one.seen_in != number_ && !mutated("second_look_takes_all")))
        continue;
      if (now.is_over(told)) {
        if (mutated("refused_when_over")) throw violation{"a wait that is over was refused"};
        continue;
      }
      // If the wait was cancelled after the second look, it was part of a cycle until then.
      std::set<std::string> seen;
      state alone = now;
      alone.cancels = 0;
      if (now.cancels == cancels_ && alone.may_end(told, one.awaits, seen))
        throw violation{"a wait was refused that may end"};
      one.over = true;
      ++refused;
      progress_ += std::to_string(told);
    }
    return refused;
  }

  state now;

 private:
  // Everything on which the further course depends.
  std::string where() const {
    std::string text = now.key() + progress_ + '#' + std::to_string(number_);
    for (const actor_state& one : now.all)
      text += ' ' + std::to_string(one.seen_in) + (one.limited ? "l" : "");
    return text;
  }

  choices& by_;
  const unsigned cancels_;
  unsigned number_ = 0;
  std::string progress_;  // of the search
  graph first_;
};

// Returns false when it has found a violation.
bool check(const char* name, const script (&told)[actors], unsigned cancels = 0) {
  choices by;
  unsigned long iterations = 0;
  do {
    ++iterations;
    state begins;
    begins.cancels = cancels;
    for (std::size_t i = 0; i < actors; ++i) {
      begins.told[i] = &told[i];
      if (!told[i].empty()) begins.all[i].queue.push_back(-2);
    }
    world of(std::move(begins), by);
    try {
      static_cast<void>(of.search());
      of.run_to_rest();
      while (!of.now.is_ended()) {
        if (of.search() == 0) throw violation{"a circle was not found"};
        of.run_to_rest();
      }
    } catch (const seen_before&) {
    } catch (const violation& found) {
      std::printf("%s: %s\niteration: %lu\n", name, found.what.c_str(), iterations);
      return false;
    }
  } while (by.next());
  return true;
}

// Random programs. They are short, because otherwise they would have too many orders.
script any_script(std::minstd_rand& random, std::size_t self, bool nested) {
  script steps;
  for (std::size_t count = random() % (nested ? 2 : 3); count != 0; --count) {
    const std::size_t callee = (self + 1 + random() % (actors - 1)) % actors;
    step one{callee, {}, random() % 8 == 0};
    if (!nested && random() % 2 == 0) one.handler = any_script(random, callee, true);
    steps.push_back(std::move(one));
  }
  return steps;
}

}  // namespace

int main() {
  const script none, asks_0{step{0}}, asks_1{step{1}}, asks_2{step{2}};
  // Two actors ask each other at the same time.
  if (!check("crossing", {asks_1, asks_0, none})) return 1;
  // One of the two is stopped meanwhile.
  if (!check("stopped", {asks_1, asks_0, none}, 1)) return 1;
  // A cycle of three.
  if (!check("three", {asks_1, asks_2, asks_0})) return 1;
  // A cycle is no deadlock while one of its waits has a limit.
  if (!check("limited", {script{step{1, {}, true}}, asks_0, asks_0})) return 1;
  // The second actor answers the first one, and then asks it on behalf of the third.
  if (!check("answered", {asks_1, none, script{step{1, asks_0}}})) return 1;
  // The same cycle twice, in the same memory of the waits.
  if (!check("twice", {asks_1, none, script{step{1, asks_0}, step{0, asks_1}, step{1, asks_0}}}))
    return 1;
  constexpr int programs = 150;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    std::minstd_rand random(seed);
    script told[actors];
    for (std::size_t i = 0; i < actors; ++i) told[i] = any_script(random, i, false);
    if (!check(("seed " + std::to_string(seed)).c_str(), told)) return 1;
  }
  return 0;
}
