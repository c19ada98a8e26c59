#include "runtime/observing/socket_answers.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "runtime/observing/numbers/history_watch.hpp"
#include "runtime/observing/numbers/json_text.hpp"
#include "runtime/observing/numbers/numbers_json.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/observed_runtime.hpp"
#include "runtime/observing/relations.hpp"
#include "runtime/observing/stacks/stacks.hpp"
#include "runtime/observing/summary.hpp"
#include "runtime/observing/turns/turns.hpp"
#include "troupe/log/log.hpp"

namespace troupe::observing {
namespace {

constexpr std::size_t page_max = 1000;

constexpr std::string_view usage =
    "ask one of: summary; numbers [components]; dump; warnings; actors RUNTIME FROM COUNT [CLASS]; "
    "longest RUNTIME COUNT "
    "[CLASS]; actor RUNTIME ID; waits RUNTIME; threads RUNTIME; stacks RUNTIME [WORKER|running]; "
    "history RUNTIME AGO SECONDS [TABLE]; turns COUNT; trace MILLISECONDS; log [LEVEL [LOGGER]]. "
    "RUNTIME is a number from 0 on, FROM the id of an actor, COUNT at most 1000 (of turns 100000), "
    "AGO and SECONDS at most 3600, MILLISECONDS 1 to 600000";

// Takes the next word of the line; empty at its end.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

bool take_number(std::string_view& line, std::uint64_t& number) {
  const std::string_view word = take_word(line);
  const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), number);
  return !word.empty() && bad == std::errc{} && end == word.data() + word.size();
}

// All numbers, in one form: tables with declared columns. /metrics, the page and the tool show
// them.
std::string numbers(std::span<observed_runtime* const> runtimes, bool components_only) {
  observe::number_tables all;
  collect_process(all, components_only);
  for (std::size_t i = 0; i < runtimes.size(); ++i)
    collect_numbers(all, std::to_string(i), *runtimes[i], components_only);
  json_text text;
  text.open('{').member("now_ns", base::now_ns()).key("runtimes").open('[');
  for (std::size_t i = 0; i < runtimes.size(); ++i) text.value(i);
  write_tables(text.close(']').key("tables"), all);
  text.close('}');
  return std::move(text).take();
}

std::string summary(std::span<observed_runtime* const> runtimes) {
  json_text text;
  text.open('{').member("version", 1).member("pid", ::getpid());
  text.member("program", ::program_invocation_short_name);
  text.member("now_ns", base::now_ns()).member("one_sample_in", 64);
  write_members(text.key("log").open('{'), log_numbers, log::count());
  text.close('}');
  write_process(text.key("process"));
  text.key("runtimes").open('[');
  for (observed_runtime* const runtime : runtimes) write_summary(text, *runtime);
  text.close(']').close('}');
  return std::move(text).take();
}

// Sets a level, if the question names a level, and returns all levels.
std::string log_levels(std::string_view rest) {
  if (!rest.empty()) {
    log::level least{};
    if (!log::level_of(take_word(rest), least))
      return refusal("a level is one of trace, debug, info, warning, error, off");
    log::set_level(rest, least);
  }
  json_text text;
  text.open('{').key("levels").open('{');
  for (const auto& [name, least] : log::levels()) text.member(name, log::name_of(least));
  text.close('}').close('}');
  return std::move(text).take();
}

std::string dump(std::span<observed_runtime* const> runtimes) {
  json_text text;
  text.open('{').key("dumps").open('[');
  for (observed_runtime* const runtime : runtimes) text.value(runtime->core.dump());
  text.close(']').close('}');
  return std::move(text).take();
}

std::string warnings(std::span<observed_runtime* const> runtimes) {
  json_text text;
  text.open('{').member("now_ns", base::now_ns()).key("runtimes").open('[');
  for (observed_runtime* const runtime : runtimes) {
    runtime->watch.list().write_all(text.open('{').key("warnings"));
    runtime->watch.list().write_counts(text.key("warning_counts"));
    text.close('}');
  }
  text.close(']').close('}');
  return std::move(text).take();
}

std::string list(bool longest, std::string_view rest, std::span<observed_runtime* const> runtimes) {
  std::uint64_t runtime = 0, from = 0, count = 0;
  if (!take_number(rest, runtime) || (!longest && !take_number(rest, from)) ||
      !take_number(rest, count) || count == 0 || count > page_max)
    return refusal(usage);
  if (runtime >= runtimes.size()) return refusal("there is no runtime of that number");
  json_text text;
  observed_runtime& observed = *runtimes[runtime];
  // The rest of the line is the name of a class, which may have spaces.
  longest ? write_longest(text, observed, count, rest)
          : write_actors(text, observed, from, count, rest);
  return std::move(text).take();
}

// The answers for one runtime, without further words.
std::string of_runtime(std::string_view command, std::string_view rest,
                       std::span<observed_runtime* const> runtimes) {
  std::uint64_t runtime = 0, id = 0;
  if (!take_number(rest, runtime) || (command == "actor" && !take_number(rest, id)) ||
      !rest.empty())
    return refusal(usage);
  if (runtime >= runtimes.size()) return refusal("there is no runtime of that number");
  json_text text;
  observed_runtime& observed = *runtimes[runtime];
  if (command == "actor") {
    write_story(text, observed, id);
  } else {
    command == "waits" ? write_waits(text, observed) : write_threads(text, observed);
  }
  return std::move(text).take();
}

std::string history(std::string_view rest, std::span<observed_runtime* const> runtimes) {
  constexpr std::uint64_t seconds_max = 3600;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  std::uint64_t runtime = 0, ago = 0, seconds = 0;
  if (!take_number(rest, runtime) || !take_number(rest, ago) || !take_number(rest, seconds) ||
      ago > seconds_max || seconds == 0 || seconds > seconds_max)
    return refusal(usage);
  if (runtime >= runtimes.size()) return refusal("there is no runtime of that number");
  json_text text;
  runtimes[runtime]->history.write(text, static_cast<std::int64_t>(ago) * ns_per_s, seconds, rest);
  return std::move(text).take();
}

std::string turns(std::string_view rest) {
  constexpr std::uint64_t turns_max = 100'000;
  std::uint64_t count = 0;
  if (!take_number(rest, count) || !rest.empty() || count == 0 || count > turns_max)
    return refusal(usage);
  if (!are_turns_recorded())
    return refusal("no flight recorder: start the program with TROUPE_FLIGHT_RECORDER=1");
  json_text text;
  write_turns(text, count);
  return std::move(text).take();
}

std::string stacks(std::string_view rest, std::span<observed_runtime* const> runtimes) {
  constexpr std::uint64_t worker_max = 100'000;
  std::uint64_t runtime = 0, worker = 0;
  stacks_wanted wanted;
  if (!take_number(rest, runtime)) return refusal(usage);
  if (rest == "running") {
    wanted.running_only = true;
  } else if (!rest.empty()) {
    if (!take_number(rest, worker) || !rest.empty() || worker > worker_max) return refusal(usage);
    wanted.worker = static_cast<unsigned>(worker);
  }
  if (runtime >= runtimes.size()) return refusal("there is no runtime of that number");
  if (const char* const why = stacks_refused()) return refusal(why);
  json_text text;
  write_stacks(text, runtimes[runtime]->core, wanted);
  return std::move(text).take();
}

}  // namespace

std::string refusal(std::string_view why) {
  json_text text;
  text.open('{').member("error", why).close('}');
  return std::move(text).take();
}

std::optional<std::int64_t> trace_ms_of(std::string_view question) noexcept {
  constexpr std::uint64_t trace_ms_max = 600'000;
  std::uint64_t ms = 0;
  if (take_word(question) != "trace" || !take_number(question, ms) || !question.empty() ||
      ms == 0 || ms > trace_ms_max)
    return std::nullopt;
  return static_cast<std::int64_t>(ms);
}

std::string answer(std::string_view question, std::span<observed_runtime* const> runtimes) {
  std::string_view rest = question;
  const std::string_view command = take_word(rest);
  if (command == "actors" || command == "longest")
    return list(command == "longest", rest, runtimes);
  if (command == "actor" || command == "waits" || command == "threads")
    return of_runtime(command, rest, runtimes);
  if (command == "log") return log_levels(rest);
  if (command == "stacks") return stacks(rest, runtimes);
  if (command == "history") return history(rest, runtimes);
  if (command == "turns") return turns(rest);
  if (command == "summary" && rest.empty()) return summary(runtimes);
  if (command == "numbers" && (rest.empty() || rest == "components"))
    return numbers(runtimes, !rest.empty());
  if (command == "dump" && rest.empty()) return dump(runtimes);
  if (command == "warnings" && rest.empty()) return warnings(runtimes);
  return refusal(usage);
}

}  // namespace troupe::observing
