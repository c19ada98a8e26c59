#include "sched/exploring/exploring_source.hpp"

#include <algorithm>
#include <string>

#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/seen_file.hpp"

namespace troupe::sched::exploring {
namespace {

// How often a late hold lets time pass: a timer that repeats would hold a turn without end.
constexpr unsigned passes_max = 32;

std::uint64_t mixed(std::uint64_t seed, std::uint64_t other) noexcept {
  return child_name(seed, static_cast<std::uint32_t>(other)) ^ (other << 32);
}

// The first runtime of a program makes its runnables in the program's own name.
choice_name root_of(unsigned runtime) noexcept {
  return runtime == 0 ? program_name : child_name(program_name, UINT32_MAX - runtime);
}

}  // namespace

exploring_source::exploring_source(std::shared_ptr<execution> owner)
    : execution_(std::move(owner)),
      runtime_(execution_->runtimes++),
      root_(root_of(runtime_)),
      seeded_(execution_->plan.seed),
      random_(mixed(execution_->plan.seed, root_)),
      holds_(execution_->plan.holds),
      passes_left_(passes_max) {
  for (std::size_t i = 0; i < holds_.size(); ++i) {
    holds_of_[holds_[i].held.name()].push_back(i);
    if (holds_[i].until) ended_.try_emplace(holds_[i].until->name(), 0);
  }
  const schedule& plan = execution_->plan;
  for (unsigned i = 1; plan.by == strategy::priorities && i < plan.depth; ++i)
    change_points_.push_back(random_() % std::max<std::uint64_t>(plan.turns_expected, 1));
  std::sort(change_points_.rbegin(), change_points_.rend());
}

std::uint64_t exploring_source::decide(const choice_point& at) {
  switch (at.kind) {
    case choice_kind::next:
      return next(at);
    case choice_kind::turn_length:
    case choice_kind::ready_units:
      return is_free() ? seeded_.decide(at) : 0;
    case choice_kind::turn_time:
      // of the turn and not of a stream: a turn that is new changes no others
      return mixed(at.name ^ running_.run, execution_->plan.seed) % at.bound;
    case choice_kind::delay:
      return is_held(*at.connection) ? at.bound - 1 : seeded_.decide(at);
    default:
      return seeded_.decide(at);
  }
}

void exploring_source::begin(connection_choices& connection) {
  const std::uint64_t number = ++execution_->connections;
  tell("connection");
  seeded_.begin(connection);
  if (const auto held = holds_of_.find(connection.name); held != holds_of_.end()) {
    for (const std::size_t i : held->second) {
      if (holds_[i].connection) meet_hold(i);
    }
  }
  if (std::ranges::count(execution_->plan.held_connections, number) == 0) return;
  const hold hold_made{
      .held = {connection.maker, connection.nth, 0}, .until = {}, .connection = true};
  make_hold(hold_made);
}

bool exploring_source::is_held(const connection_choices& connection) const noexcept {
  const auto held = holds_of_.find(connection.name);
  return held != holds_of_.end() && std::ranges::any_of(held->second, [this](std::size_t nth) {
           return holds_[nth].connection;
         });
}

fault exploring_source::fault_at(fault_point where, const lineage* named) {
  execution& seen = *execution_;
  const std::uint64_t number = ++seen.fault_points[static_cast<std::size_t>(where)];
  if (seen.records && seen.on_seen) seen.on_seen(line_of(where));
  const turn_id named_turn =
      named == nullptr ? turn_id{program_name, static_cast<std::uint32_t>(number), 0}
                       : turn_id{named->maker, named->nth, calls_[{where, named->name}]++};
  for (const planned_fault& planned : seen.plan.faults) {
    if (planned.number == number && place_of(planned.kind) == where)
      make_hold({.held = named_turn, .until = {}, .injected = planned.kind});
  }
  for (std::size_t i = 0; i < holds_.size(); ++i) {
    const hold& kept = holds_[i];
    if (kept.injected == fault::none || place_of(kept.injected) != where || kept.held != named_turn)
      continue;
    meet_hold(i);
    if (seen.on_fault) seen.on_fault(kept);
    return kept.injected;
  }
  return fault::none;
}

std::uint64_t exploring_source::next(const choice_point& at) {
  listed_.clear();
  ready_.clear();
  at.among->list(listed_);
  for (const lineage& listed : listed_) ready_.push_back(&meet(listed));
  if (is_free()) {
    const std::uint64_t chosen = ready_.size() < 2 ? 0 : seeded_.decide(at);
    begin_turn(*ready_[chosen], ready_.size() > 1);
    return chosen;
  }
  const std::size_t chosen = choose();
  if (chosen == none) {
    passed_ = true;
    return time_passes;
  }
  passed_ = false;
  begin_turn(*ready_[chosen], ready_.size() > 1);
  return chosen;
}

exploring_source::known& exploring_source::meet(const lineage& ready) {
  known& known_runnable = known_[ready.name];
  if (!known_runnable.waits) {
    known_runnable.origin = ready;
    arrive(known_runnable);
  }
  return known_runnable;
}

// It became ready, for the first time or again.
void exploring_source::arrive(known& runnable) {
  const schedule& plan = execution_->plan;
  runnable.waits = true;
  runnable.arrived = ++arrivals_;
  runnable.begun = execution_->turns;
  if (runnable.runs == 0) {
    runnable.number = ++execution_->arrivals;
    if (execution_->records) tell("arrival");
    if (std::ranges::count(plan.held_arrivals, runnable.number) != 0) {
      const hold held{
          .held = {runnable.origin.maker, runnable.origin.nth, 0}, .until = {}, .late = plan.late};
      make_hold(held);
    }
    if (plan.by == strategy::priorities) {
      const auto maker = known_.find(runnable.origin.maker);
      runnable.priority = plan.inherits && runnable.origin.nth == 1 && maker != known_.end()
                              ? maker->second.priority
                              : mixed(runnable.origin.name, plan.seed) | std::uint64_t{1} << 63;
    }
  } else {
    runnable.number = ++execution_->returns;
    if (execution_->records) tell("return");
    if (std::ranges::count(plan.held_returns, runnable.number) != 0)
      make_hold({.held = {runnable.origin.maker, runnable.origin.nth, runnable.runs},
                 .until = {},
                 .late = plan.late});
  }
  runnable.hold = hold_of(runnable);
  meet_hold(runnable.hold);
}

void exploring_source::make_hold(const hold& hold_made) {
  execution_->new_holds.push_back(hold_made);
  holds_of_[hold_made.held.name()].push_back(holds_.size());
  holds_.push_back(hold_made);
  if (execution_->on_seen) execution_->on_seen("made " + text_of(hold_made));
}

// A hold of the plan.
void exploring_source::meet_hold(std::size_t nth) {
  if (nth >= execution_->met.size() || execution_->met[nth] != 0) return;
  execution_->met[nth] = 1;
  if (execution_->on_seen) execution_->on_seen("met " + std::to_string(nth));
}

void exploring_source::tell(const char* line) const {
  if (execution_->on_seen) execution_->on_seen(line);
}

// The hold of the turn that comes next.
std::size_t exploring_source::hold_of(const known& runnable) const noexcept {
  const auto found = holds_of_.find(runnable.origin.name);
  if (found == holds_of_.end()) return none;
  for (const std::size_t i : found->second) {
    if (holds_[i].is_turn() && holds_[i].held.run == runnable.runs) return i;
  }
  return none;
}

bool exploring_source::holds_back(const known& runnable) const noexcept {
  if (runnable.hold == none) return false;
  const hold& by = holds_[runnable.hold];
  if (!by.until) return true;
  const auto ended = ended_.find(by.until->name());
  return ended == ended_.end() || ended->second <= by.until->run;
}

std::size_t exploring_source::choose() {
  const schedule& plan = execution_->plan;
  const bool is_long =
      plan.turns_expected != 0 && execution_->turns > 2 * plan.turns_expected + 1'000;
  if (plan.by == strategy::one_message || (plan.by == strategy::priorities && is_long))
    return random_() % ready_.size();
  if (plan.by == strategy::priorities) return by_priority();
  if (const std::size_t free = oldest(true); free != none) return free;
  const bool may_pass =
      !passed_ && passes_left_ != 0 && std::ranges::all_of(ready_, [this](const known* runnable) {
        return holds_[runnable->hold].late;
      });
  if (!may_pass) return oldest(false);
  --passes_left_;
  return none;
}

std::size_t exploring_source::oldest(bool free_only) const noexcept {
  std::size_t found = none;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (free_only && holds_back(*ready_[i])) continue;
    if (found == none || ready_[i]->arrived < ready_[found]->arrived) found = i;
  }
  return found;
}

std::size_t exploring_source::by_priority() {
  const auto highest = [this] {
    std::size_t found = 0;
    for (std::size_t i = 1; i < ready_.size(); ++i) {
      if (ready_[i]->priority > ready_[found]->priority) found = i;
    }
    return found;
  };
  while (!change_points_.empty() && execution_->turns >= change_points_.back()) {
    ready_[highest()]->priority = change_points_.size();
    change_points_.pop_back();
  }
  return highest();
}

void exploring_source::begin_turn(known& runnable, bool contested) {
  running_ = {runnable.origin.maker, runnable.origin.nth, runnable.runs};
  running_name_ = runnable.origin.name;
  if (execution_->records) {
    execution_->seen.push_back({running_, runnable.arrived, runnable.begun, runtime_});
    if (execution_->on_seen) execution_->on_seen(line_of(execution_->seen.back()));
    if (contested) {
      (runnable.runs == 0 ? execution_->contested : execution_->contested_returns)
          .push_back(runnable.number);
      if (execution_->on_seen) {
        const char* const prefix = runnable.runs == 0 ? "contested " : "contested-return ";
        execution_->on_seen(prefix + std::to_string(runnable.number));
      }
    }
  }
  ++runnable.runs;
  runnable.waits = false;
  execution_->hash = (execution_->hash ^ runnable.origin.name) * 1'099'511'628'211u;
  if (++execution_->turns % turns_a_hash != 0) return;
  execution_->hashes.push_back(execution_->hash);
  if (execution_->on_seen) execution_->on_seen(line_of_hash(execution_->hash));
}

void exploring_source::after_turn(std::int64_t now_ns) {
  if (const auto ended = ended_.find(running_name_); ended != ended_.end())
    ended->second = running_.run + 1;
  running_name_ = program_name;
  if (execution_->on_turn) execution_->on_turn(now_ns);
  livelock_.after_turn(*execution_);
}

void exploring_source::out_of_work(std::uint64_t dead_letters) {
  if (execution_->on_quiet) execution_->on_quiet(dead_letters);
}

}  // namespace troupe::sched::exploring
