// A search in the calling process: executions of the body one after the other (exploration), the
// files (replays_of, keep), and the properties.
#include "troupe/runtime/explore.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include "runtime/environment.hpp"
#include "runtime/exploring/story.hpp"
#include "runtime/exploring/story_diagram.hpp"
#include "sched/exploring/explored.hpp"
#include "sched/exploring/handler_watch.hpp"
#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/searching/coverage.hpp"
#include "sched/exploring/searching/portfolio.hpp"
#include "sched/exploring/searching/shrinking.hpp"
#include "sched/exploring/story_listener.hpp"

namespace troupe {
namespace exploring = sched::exploring;
namespace {

std::string place(const std::source_location& at) {
  return std::string(at.file_name()) + ':' + std::to_string(at.line());
}

[[noreturn]] void break_off(const std::string& reason) {
  if (const auto current = exploring::execution_here()) {
    if (current->on_break) current->on_break();
    if (current->broken.empty()) current->broken = reason;
  }
  throw expectation_failed(reason);
}

std::string text_of_current() {
  try {
    throw;
  } catch (const std::exception& failed) {
    return failed.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

std::string file_name(std::string name) {
  for (char& letter : name) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-';
    if (!plain) letter = '_';
  }
  constexpr std::size_t longest = 100;
  return name.substr(0, longest) + ".schedule";
}

}  // namespace

void expect(bool condition, std::source_location at) {
  if (!condition) break_off("troupe: expect: the condition is false at " + place(at));
}

void explored_run::at_quiescence(std::function<void()> check) {
  checks_.push_back(std::move(check));
}

void explored_run::eventually(std::function<bool()> condition, time_span within,
                              std::source_location at) {
  wishes_.push_back({std::move(condition), within.count(), at});
}

void explored_run::check_class(const actor::cell* watched, bool is_own) {
  if (watched == nullptr)
    throw usage_error(
        "troupe: invariant: the ref refers to no actor: assign it the result of spawn() before");
  if (!is_own)
    throw usage_error("troupe: invariant: the actor is a " + std::string(watched->type->name) +
                      ", which derives from the ref's class: pass a ref of that class");
}

void explored_run::after_turn(std::int64_t now_ns) {
  for (const rule& invariant : invariants_) {
    if (!invariant.holds())
      break_off("troupe: invariant: the condition of " +
                exploring::without_qualifiers(invariant.type) + " is false after a turn, at " +
                place(invariant.at));
  }
  for (std::size_t i = wishes_.size(); i-- > 0;) {
    wish& wish = wishes_[i];
    if (wish.holds()) {
      wishes_.erase(wishes_.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (now_ns > wish.within_ns) {
      break_off("troupe: eventually: the condition did not hold in time, at " + place(wish.at));
    }
  }
}

void explored_run::out_of_work() {
  after_turn(0);
  for (const wish& wish : wishes_)
    break_off("troupe: eventually: the program ended before the condition held, at " +
              place(wish.at));
  for (const auto& check : checks_) check();
}

class exploration {
 public:
  exploration(const std::function<void(explored_run&)>& body, bool dead_letters)
      : body_(body), dead_letters_(dead_letters) {}

  exploring::outcome run(const exploring::schedule& plan, bool records,
                         story* told = nullptr) const {
    auto seen = std::make_shared<exploring::execution>(plan);
    seen->records = records;
    seen->stops_on_failure = told != nullptr;
    explored_run properties;
    seen->on_turn = [&properties](std::int64_t now_ns) { properties.after_turn(now_ns); };
    seen->on_quiet = [this, &properties](std::uint64_t dead_letters) {
      if (dead_letters_ && dead_letters != 0)
        break_off("troupe: explore: a message became a dead letter");
      properties.out_of_work();
    };
    std::string failure;
    try {
      const exploring::explored_here entered(seen);
      const exploring::handler_watch watch(*seen);
      if (told == nullptr) {
        body_(properties);
      } else {
        tell(properties, *seen, *told);
      }
    } catch (...) {
      failure = text_of_current();
    }
    seen->on_fault = nullptr;
    seen->on_break = nullptr;
    seen->on_turn = nullptr;
    seen->on_quiet = nullptr;
    return {seen->broken.empty() ? failure : seen->broken, std::move(seen)};
  }

 private:
  void tell(explored_run& properties, exploring::execution& seen, story& told) const {
    const auto note = [&told](const exploring::story_event& event) { told.note(event); };
    exploring::story_listener listener(seen, note);
    seen.on_fault = [&listener](const exploring::hold& happened) { listener.note_fault(happened); };
    seen.on_break = [note] { note({.kind = exploring::story_kind::broken}); };
    body_(properties);
  }
  const std::function<void(explored_run&)>& body_;
  const bool dead_letters_;
};

namespace {

using clock = std::chrono::steady_clock;

// The schedules that TROUPE_REPLAY names for this exploration. `alone`: it is a file.
std::vector<exploring::kept_schedule> replays_of(const std::string& name, bool& alone) {
  std::vector<exploring::kept_schedule> found;
  const char* const path = std::getenv("TROUPE_REPLAY");
  if (path == nullptr || *path == '\0') return found;
  alone = !std::filesystem::is_directory(path);
  if (alone) return {exploring::read_schedule(path)};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".schedule") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    exploring::kept_schedule kept = exploring::read_schedule(file);
    if (kept.test == name) found.push_back(std::move(kept));
  }
  return found;
}

std::string unmet_of(const exploring::execution& seen) {
  std::string text;
  for (std::size_t i = 0; i < seen.met.size(); ++i) {
    if (seen.met[i] == 0) text += exploring::text_of(seen.plan.holds[i]) + '\n';
  }
  return text;
}

// Writes the story of an execution that is short enough for a reader.
void tell_story(explore_report& report, const exploration& exploration,
                const exploring::schedule& plan, const exploring::execution& seen) {
  constexpr std::uint64_t turns_max = 20'000;
  if (seen.turns > turns_max) return;
  story led, otherwise;
  exploration.run(plan, true, &led);
  if (!plan.holds.empty()) {
    exploring::schedule free = plan;
    free.holds.clear();
    exploration.run(free, true, &otherwise);
  }
  const told_story told = led.tell(report.failure, plan.holds, otherwise);
  report.story = text_of(told);
  report.diagram = svg_diagram(told, report.failure);
}

void keep(explore_report& report, const exploration& searched, const exploring::shrunk& found,
          const std::string& name, const std::string& folder) {
  report.reduced = found.reduced;
  report.shrinking_runs = found.runs;
  report.holds = static_cast<unsigned>(found.plan.holds.size());
  tell_story(report, searched, found.plan, *found.last.seen);
  exploring::kept_schedule kept{found.plan, exploring::program_id(), name, found.last.seen->hashes,
                                report.failure};
  report.schedule = exploring::text_of(kept);
  if (folder.empty()) return;
  report.file = (std::filesystem::path(folder) / file_name(name)).string();
  exploring::write_schedule(report.file, kept);
  if (report.diagram.empty()) return;
  const std::string drawn = std::filesystem::path(report.file).replace_extension(".svg").string();
  std::ofstream out(drawn, std::ios::trunc);
  out << report.diagram;
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), "troupe: " + drawn);
}

// False if it fails.
bool replay_kept(explore_report& report, const exploration& exploration,
                 const exploring::kept_schedule& kept) {
  const exploring::outcome seen = exploration.run(kept.plan, false);
  ++report.schedules;
  report.unmet += unmet_of(*seen.seen);
  if (seen.failure.empty()) return true;
  report.failure = seen.failure;
  report.strategy = "a replay";
  report.reduced = kept.plan.by == exploring::strategy::holds;
  report.holds = static_cast<unsigned>(kept.plan.holds.size());
  report.schedule = exploring::text_of(kept);
  tell_story(report, exploration, kept.plan, *seen.seen);
  return false;
}

void note_coverage(explore_report& report, const exploring::coverage& covered) {
  report.handler_pairs = static_cast<unsigned>(covered.pairs());
  report.pairs_in_both_orders = static_cast<unsigned>(covered.in_both_orders());
  report.pairs_in_one_order = covered.in_one_order();
}

// The failure of a search that is reported.
struct failing_schedule {
  std::string failure;
  std::string strategy;
  unsigned number;  // of the search's executions
  exploring::shrunk small;
};

void search(explore_report& report, const exploration& exploration, const explore_options& options,
            const std::string& name, exploring::coverage& covered) {
  runtime_options seeded;
  seeded.seed = options.seed;
  const std::uint64_t seed = resolve(seeded).seed;  // TROUPE_SEED
  const clock::time_point end = options.time.count() == time_span::max().count()
                                    ? clock::time_point::max()
                                    : clock::now() + options.time;
  exploring::portfolio schedules(seed, options.faults);
  const exploring::runner run = [&exploration](const exploring::schedule& plan, bool records) {
    return exploration.run(plan, records);
  };
  exploring::schedule plan = schedules.plain();
  constexpr std::uint64_t first_turns_max = 1'000'000;
  plan.turns_max = options.turns != 0 ? options.turns : first_turns_max;
  std::optional<failing_schedule> best;
  std::uint64_t last = options.schedules;
  unsigned failures = 0;
  for (std::uint64_t number = 1;; ++number) {
    const exploring::outcome seen = exploration.run(plan, number == 1);
    ++report.schedules;
    covered.add(*seen.seen);
    if (!seen.failure.empty()) {
      exploring::shrunk small = exploring::shrink(plan, seen, run);
      if (!best) last = std::min(last, 2 * number + exploring::further_schedules);
      if (!best || exploring::is_smaller(small, best->small))
        best = {seen.failure, std::string(exploring::name_of(plan)), report.schedules, small};
      if (exploring::is_small(small) || ++failures == exploring::shrunk_failures_max) break;
    }
    if (number == 1) schedules.size_by(*seen.seen, options.turns);
    if (number >= last || clock::now() >= end) break;
    plan = schedules.at(number);
  }
  if (!best) return;
  report.failure = best->failure;
  report.strategy = best->strategy;
  report.schedules = best->number;
  keep(report, exploration, best->small, name, options.folder);
}

}  // namespace

explore_report explore(const std::function<void(explored_run&)>& body,
                       const explore_options& options, std::source_location from) {
  const std::string name = options.name.empty() ? from.function_name() : options.name;
  if (name.find('\n') != std::string::npos)
    throw option_error("troupe: explore: the name has a line break");
  const exploration searched(body, options.dead_letters);
  explore_report report;
  bool alone = false;
  for (const exploring::kept_schedule& kept : replays_of(name, alone)) {
    if (!replay_kept(report, searched, kept)) return report;
  }
  if (alone) return report;
  exploring::coverage covered;
  search(report, searched, options, name, covered);
  note_coverage(report, covered);
  return report;
}

explore_report explore(const std::function<void(explored_run&)>& body, std::source_location from) {
  return explore(body, explore_options(), from);
}

explore_report replay(const std::function<void(explored_run&)>& body, const std::string& schedule) {
  const exploring::kept_schedule kept = exploring::parse_schedule(schedule, "the schedule");
  explore_report report;
  replay_kept(report, exploration(body, false), kept);
  return report;
}

std::ostream& operator<<(std::ostream& to, const explore_report& report) {
  if (!report.unmet.empty()) to << "holds that were not met:\n" << report.unmet;
  const std::string covered =
      report.handler_pairs == 0
          ? std::string()
          : '\n' + exploring::text_of_pairs(report.pairs_in_both_orders, report.handler_pairs);
  if (report.failure.empty())
    return to << "no failure in " << report.schedules << " schedules; others may fail" << covered;
  to << report.failure << "\n  found by " << report.strategy << " in schedule " << report.schedules;
  if (report.reduced) {
    to << ", reduced to " << report.holds << (report.holds == 1 ? " hold" : " holds") << " in "
       << report.shrinking_runs << " executions";
  }
  to << covered;
  if (!report.file.empty()) to << "\n  repeat: TROUPE_REPLAY=" << report.file;
  if (!report.story.empty()) to << "\nthe turns that led to it:\n" << report.story;
  return to << "\n" << report.schedule;
}

}  // namespace troupe
