#include "durable/engine/cycle_search.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "durable/memory/answer_list.hpp"
#include "durable/memory/nested_asks.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

// An ask that waits for less is not looked at.
constexpr std::chrono::milliseconds cycle_look_every{500};

}  // namespace

void cycle_search::need_looks() {
  if (!cycles_.begin_looks()) return;
  try {
    core_.start([this](engine_ref keeps) { return look_for_cycles(std::move(keeps)); });
  } catch (...) {
    cycles_.end_looks();
    throw;
  }
}

// As long as answers of other nodes are waited for.
task<> cycle_search::look_for_cycles(engine_ref keeps) {
  std::set<message_id> waited_before;
  std::vector<cycle_question> waiting;
  for (;;) {
    co_await sleep_for(cycle_look_every);
    if (!find_waiting_asks(waiting)) co_return;
    for (const cycle_question& question : waiting) {
      if (!waited_before.contains(question.ask)) continue;
      auto asks = waits_for(keeps, question);
      if (co_await std::move(asks)) take_back(question.ask);
    }
    waited_before.clear();
    for (const cycle_question& question : waiting) waited_before.insert(question.ask);
  }
}

bool cycle_search::find_waiting_asks(std::vector<cycle_question>& waiting) {
  guard held(core_);
  return cycles_.find_waiting_asks(waiting);
}

task<bool> cycle_search::waits_for(engine_ref, cycle_question question) {
  cycle_steps next;
  {
    guard held(core_);
    next = cycles_.follow(question);
  }
  if (next.is_found) co_return true;
  for (cycle_question& remote : next.elsewhere) {
    bool leads_back = false;
    try {
      auto asks = shards_.scope().waits_for(std::move(remote));
      leads_back = co_await std::move(asks);
    } catch (const troupe::error&) {
      // It is not known.
    }
    if (leads_back) co_return true;
  }
  co_return false;
}

// It has not begun; otherwise it stays.
void cycle_search::take_back(const message_id& ask) {
  std::unique_ptr<answer_to> answer;
  std::string text = "troupe: durable: this ask would wait for itself, over other nodes: ";
  {
    guard held(core_);
    const record_ref message = known_.find(ask);
    if (message == nullptr || message->stored_with != 0) return;
    const actor_name& name = message->row.to;
    activation* const actor = cycles_.find_actor(name);
    if (actor == nullptr || !actor->waits.remove(message)) return;
    text += name.kind + " " + name.key;
    known_.remove(message);
    inbox_.leave(*message);
    end_wait(*message);
    answer = std::move(message->answer);
  }
  fail_all(answer, std::make_exception_ptr(deadlock(text)));
}

}  // namespace troupe::durable::parts
