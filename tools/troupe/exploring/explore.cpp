#include "exploring/explore.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "exploring/child.hpp"
#include "exploring/telling.hpp"
#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/searching/coverage.hpp"
#include "sched/exploring/searching/portfolio.hpp"
#include "sched/exploring/searching/shrinking.hpp"
#include "trust/failure.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace exploring = troupe::sched::exploring;
namespace {

using clock = std::chrono::steady_clock;

std::chrono::milliseconds run_limit(const explore_choices& chosen) {
  return std::chrono::milliseconds(static_cast<long>(chosen.run_seconds * 1000));
}

class program_search {
 public:
  explicit program_search(const explore_choices& chosen)
      : chosen_(chosen),
        end_(clock::now() + std::chrono::milliseconds(static_cast<long>(chosen.seconds * 1000))),
        schedules_(chosen.seed, chosen.faults),
        last_(chosen.schedules) {}

  int run();

 private:
  struct found {
    std::uint64_t number;
    exploring::schedule plan;
    exploring::outcome seen;
  };
  exploring::outcome run_one(const exploring::schedule& plan, bool records, unsigned slot) const;
  void work(unsigned slot);
  std::optional<std::uint64_t> take();
  void note(found run);
  void progress();
  void put_coverage() const;
  bool search_on();
  bool report();
  void write(const std::string& text, const exploring::shrunk& small) const;
  void tell(const std::string& text, const exploring::schedule& plan) const;

  const explore_choices& chosen_;
  const clock::time_point end_;
  const work_folder folder_;
  exploring::portfolio schedules_;  // does not change while threads are at work
  std::mutex mutex_;                // for those below
  std::uint64_t last_;              // of the schedules
  std::uint64_t next_ = 1, done_ = 0;
  exploring::coverage covered_;
  std::optional<found> first_;
  std::optional<exploring::shrunk> best_;  // of the failures before
  std::exception_ptr broken_;
  clock::time_point told_ = clock::now();
};

exploring::outcome program_search::run_one(const exploring::schedule& plan, bool records,
                                           unsigned slot) const {
  exploring::kept_schedule kept;
  kept.plan = plan;
  kept.records = records;
  kept.dead_letters = chosen_.dead_letters;
  return run_child(chosen_.program, fmt::format("{}/{}", folder_.path(), slot), kept,
                   run_limit(chosen_));
}

std::optional<std::uint64_t> program_search::take() {
  const std::lock_guard lock(mutex_);
  if (first_ || broken_ || next_ >= last_ || clock::now() >= end_) return std::nullopt;
  return next_++;
}

// Of several that fail at the same time the first counts.
void program_search::note(found run) {
  const std::lock_guard lock(mutex_);
  ++done_;
  covered_.add(*run.seen.seen);
  const bool earlier = !first_ || run.number < first_->number;
  if (!run.seen.failure.empty() && earlier) first_ = std::move(run);
  progress();
}

// Under the mutex.
void program_search::progress() {
  constexpr std::chrono::milliseconds between(200);
  if (::isatty(STDERR_FILENO) == 0 || clock::now() < told_ + between) return;
  told_ = clock::now();
  const std::string covered = exploring::text_of_pairs(covered_.in_both_orders(), covered_.pairs());
  std::fprintf(stderr, "\r%llu of %u schedules; %s ", static_cast<unsigned long long>(done_),
               chosen_.schedules, covered.c_str());
}

void program_search::work(unsigned slot) {
  try {
    while (const std::optional<std::uint64_t> number = take()) {
      const exploring::schedule plan = schedules_.at(*number);
      note({*number, plan, run_one(plan, false, slot)});
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!broken_) broken_ = std::current_exception();
  }
}

int program_search::run() {
  constexpr std::uint64_t first_turns_max = 10'000'000;
  exploring::schedule plain = schedules_.plain();
  plain.turns_max = first_turns_max;
  const exploring::outcome seen = run_one(plain, true, 0);
  note({0, plain, seen});
  if (!first_ && seen.seen->turns == 0)
    throw failure(fmt::format("{} made no runtime, or ran nothing in one: nothing to search",
                              chosen_.program.front()));
  schedules_.size_by(*seen.seen, 0);
  for (unsigned failures = 1; search_on(); ++failures) {
    if (report() || failures == exploring::shrunk_failures_max) return 1;
    first_.reset();
  }
  if (!best_)
    put(fmt::format("no failure in {} schedules of about {} turns; others may fail\n", done_,
                    seen.seen->turns));
  put_coverage();
  return best_ ? 1 : 0;
}

void program_search::put_coverage() const {
  if (covered_.pairs() == 0) return;
  put(exploring::text_of_pairs(covered_.in_both_orders(), covered_.pairs()) + '\n');
  const std::string lines = covered_.in_one_order();
  if (!chosen_.pairs || lines.empty()) return;
  put("in one order only:\n" + lines);
}

// Until a schedule fails. False if none does any longer.
bool program_search::search_on() {
  if (first_) return true;
  const unsigned processors = std::max(std::thread::hardware_concurrency(), 1u);
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < (chosen_.jobs != 0 ? chosen_.jobs : processors); ++i)
    workers.emplace_back([this, i] { work(i); });
  workers.clear();
  if (::isatty(STDERR_FILENO) != 0) put("\n", stderr);
  if (broken_) std::rethrow_exception(broken_);
  return first_.has_value();
}

std::string quoted(const std::vector<std::string>& program) {
  std::string text;
  for (const std::string& word : program) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`*?[](){}<>|&;#~!") == std::string::npos;
    text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char letter : word)
      text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    text += '\'';
  }
  return text;
}

std::string counted(std::ptrdiff_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "2 late turns and 1 fault".
std::string holds_text(const std::vector<exploring::hold>& holds) {
  const std::ptrdiff_t faults = std::ranges::count_if(holds, [](const exploring::hold& kept) {
    return kept.injected != troupe::sched::fault::none;
  });
  const std::ptrdiff_t late = std::ssize(holds) - faults;
  if (faults == 0) return counted(late, "late turn");
  return (late == 0 ? "" : counted(late, "late turn") + " and ") + counted(faults, "fault");
}

// Reduces the first failure, and writes it if it is smaller than the one before. Returns whether it
// is small; if not, another one may be.
bool program_search::report() {
  const found& failing = *first_;
  put(fmt::format("schedule {} fails ({}): {}\n", failing.number + 1,
                  exploring::name_of(failing.plan), shown(failing.seen.failure)));
  const exploring::shrunk small = exploring::shrink(
      failing.plan, failing.seen,
      [this](const auto& plan, bool records) { return run_one(plan, records, 0); });
  if (small.reduced) {
    put(fmt::format("reduced to {} in {} executions\n", holds_text(small.plan.holds), small.runs));
  } else {
    put("not reduced to late turns: the file keeps the strategy and its seed\n");
  }
  if (!best_) last_ = std::min(last_, 2 * failing.number + exploring::further_schedules);
  if (!best_ || exploring::is_smaller(small, *best_)) {
    tell(failing.seen.failure, small.plan);
    write(failing.seen.failure, small);
    best_ = small;
  }
  return exploring::is_small(small);
}

void print_story(const troupe::told_story& told) {
  if (!told.messages.empty() || !told.faults.empty())
    put("the turns that led to it:\n" + troupe::text_of(told));
}

// Of an execution that a reader could follow.
void program_search::tell(const std::string& text, const exploring::schedule& plan) const {
  exploring::kept_schedule kept;
  kept.plan = plan;
  kept.dead_letters = chosen_.dead_letters;
  const troupe::told_story told =
      story_of(chosen_.program, folder_.path() + "/story", kept, text, run_limit(chosen_));
  if (told.messages.empty() && told.faults.empty()) return;
  print_story(told);
  if (!chosen_.story.empty()) write_diagram(chosen_.story, told, text);
}

void program_search::write(const std::string& text, const exploring::shrunk& small) const {
  exploring::kept_schedule kept;
  kept.plan = small.plan;
  kept.program = small.last.seen->program;
  kept.hashes = small.last.seen->hashes;
  kept.dead_letters = chosen_.dead_letters;
  kept.remarks = quoted(chosen_.program).substr(1) + '\n' + text;
  exploring::write_schedule(chosen_.file, kept);
  put(fmt::format("repeat it: troupe replay{} --{}\n", quoted({chosen_.file}),
                  quoted(chosen_.program)));
}

}  // namespace

int explore(const explore_choices& chosen) {
  if (chosen.program.empty())
    throw failure("explore: a program is missing: troupe explore ./program arguments");
  program_search search(chosen);
  return search.run();
}

namespace {

exploring::kept_schedule schedule_of(const std::string& file) {
  try {
    return exploring::read_schedule(file);
  } catch (const std::exception& wrong) {
    throw failure(wrong.what());
  }
}

int replay_told(const exploring::kept_schedule& kept, const explore_choices& chosen) {
  const work_folder folder;
  const std::string stem = folder.path() + "/replay";
  const exploring::outcome seen = run_child(chosen.program, stem, kept, run_limit(chosen));
  for (std::size_t i = 0; i < seen.seen->met.size(); ++i) {
    if (seen.seen->met[i] == 0)
      print_line("this hold was not met: " + exploring::text_of(kept.plan.holds[i]));
  }
  if (seen.failure.empty()) {
    print_line("the program did not fail");
    return 0;
  }
  print_line("the program fails: " + seen.failure);
  const troupe::told_story told =
      story_of(chosen.program, stem, kept, seen.failure, run_limit(chosen));
  if (told.messages.empty())
    throw failure(
        "there is no story: the program made no runtime by the schedule (a test that calls "
        "explore() has its story in its report), or it fails otherwise while it is told");
  print_story(told);
  write_diagram(chosen.story, told, seen.failure);
  return 1;
}

}  // namespace

int replay(const std::string& file, const explore_choices& chosen) {
  const std::vector<std::string>& program = chosen.program;
  if (program.empty())
    throw failure(fmt::format("replay: a program is missing: troupe replay {} -- ./program", file));
  const exploring::kept_schedule known = schedule_of(file);
  if (!chosen.story.empty()) return replay_told(known, chosen);
  ::setenv("TROUPE_REPLAY", std::filesystem::absolute(file).c_str(), 1);
  std::vector<std::string> kept = program;
  std::vector<char*> words;
  for (std::string& word : kept) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  throw failure(fmt::format("{} cannot be run: {}", program.front(), std::strerror(errno)));
}

}  // namespace troupe_tool
