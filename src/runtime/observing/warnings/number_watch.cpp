#include "runtime/observing/warnings/number_watch.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include "runtime/observing/warnings/warning_texts.hpp"

namespace troupe::observing {
namespace {

using observe::trouble;

struct trouble_words {
  trouble trouble_kind;
  warning_kind kind;
  const char* noun;    // in front of the name of the thing
  const char* labels;  // which make its name
  std::string_view advice;
};
constexpr trouble_words all_words[] = {
    {trouble::slow_requests, warning_kind::slow_requests, "", "method route",
     "A trace of the next seconds shows where the time goes; let slow work run beside the request, "
     "or keep its result in a cache."},
    {trouble::slow_statements, warning_kind::slow_statements, "", "statement database",
     "Ask the database for its plan (EXPLAIN): an index may lack; or fetch fewer rows at a time."},
    {trouble::pool_exhausted, warning_kind::pool_exhausted, "the pool ", "pool",
     "Look for leases that are kept for too long, raise pool_options::max, or limit the callers."},
    {trouble::refused_clients, warning_kind::refused_clients, "the HTTP server ", "server",
     "A single client may flood the server; otherwise raise its limits of connections."},
    {trouble::exporter_unavailable, warning_kind::exporter_unavailable, "the exporter of spans", "",
     "See whether the collector runs and can be reached at the exporter's address."}};

const trouble_words& words_of(trouble kind) noexcept {
  return *std::ranges::find(all_words, kind, &trouble_words::trouble_kind);
}

// "GET /users", "SELECT 1 in sqlite": the labels in the order of the words.
std::string name_of_thing(const trouble_words& words, std::span<const std::string_view> names,
                          const std::vector<std::string>& labels) {
  constexpr std::size_t bytes_max = 80;
  std::string name;
  std::string_view rest = words.labels;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto at = static_cast<std::size_t>(std::ranges::find(names, word) - names.begin());
    if (at >= labels.size()) continue;
    std::string label = labels[at];
    if (label.size() > bytes_max) label = label.substr(0, bytes_max) + "…";
    name += (name.empty() ? "" : word == "database" ? " in " : " ") + label;
  }
  return words.noun + name;
}

std::uint64_t counted_value(const observe::number_value& value) noexcept {
  if (const auto* const count = std::get_if<std::uint64_t>(&value)) return *count;
  if (const auto* const count = std::get_if<std::int64_t>(&value))
    return *count < 0 ? 0 : static_cast<std::uint64_t>(*count);
  return 0;
}

double seconds_of(time_span limit) {
  return std::chrono::duration<double>(std::chrono::nanoseconds(limit)).count();
}

}  // namespace

void number_watch::sink::take(const observe::number_group& group, std::vector<std::string> labels,
                              const void* values) {
  for (const observe::number& number : group.numbers()) {
    if (number.shows == trouble::none) continue;
    seen_number& seen = watch_.seen_[{&number, labels}];
    const observe::number_value now = number.read(values);
    std::string text;
    const bool is_found =
        watch_.is_in_trouble(number, now, seen, text) && seen.again.is_again(now_ns_, lasts_);
    seen.value = now;
    seen.is_known = true;
    seen.look = watch_.looks_;
    if (!is_found) continue;
    const trouble_words& words = words_of(number.shows);
    std::string name = name_of_thing(words, group.labels(), labels);
    finding found{words.kind};
    found.subject = name;
    found.text = name + text;
    found.advice = words.advice;
    found_.push_back({std::move(found), std::move(name)});
  }
}

bool number_watch::is_in_trouble(const observe::number& number, const observe::number_value& now,
                                 const seen_number& before, std::string& text) const {
  if (const auto* const took = std::get_if<observe::distribution>(&now)) {
    const time_span limit =
        number.shows == trouble::slow_statements ? limits_.statement : limits_.request;
    return limit.count() != 0 && is_slow(*took, before, seconds_of(limit), text);
  }
  if (!limits_.others) return false;
  const std::uint64_t count = counted_value(now);
  if (number.kind == observe::number_kind::gauge) {
    text = " has no resource left, and " + counted(count, "caller") + " " +
           (count == 1 ? "waits." : "wait.");
    return count != 0;
  }
  const std::uint64_t more = count - std::min(count, counted_value(before.value));
  if (!before.is_known || more == 0) return false;
  text = (number.shows == trouble::exporter_unavailable
              ? " reaches no collector: " + counted(count, "request") + " failed so far, "
              : " has turned away " + counted(count, "connection") + " so far, ") +
         std::to_string(more) + " of them since the last look.";
  return true;
}

// All but one in a hundred of the new values should lie below the limit.
bool number_watch::is_slow(const observe::distribution& now, const seen_number& before,
                           double limit_seconds, std::string& text) const {
  constexpr std::uint64_t one_in = 100;
  const auto* const then = std::get_if<observe::distribution>(&before.value);
  std::uint64_t all = 0, slow = 0;
  double slowest = 0;  // a bound
  for (std::size_t i = 0; i < now.counts.size(); ++i) {
    const std::uint64_t old = then == nullptr || i >= then->counts.size() ? 0 : then->counts[i];
    const std::uint64_t more = now.counts[i] - std::min(now.counts[i], old);
    all += more;
    if (more == 0 || i == 0 || now.bounds[i - 1] < limit_seconds) continue;
    slow += more;
    slowest = now.bounds[std::min(i, now.bounds.size() - 1)];
  }
  if (slow == 0 || slow * one_in < all) return false;
  constexpr double ns_per_s = 1e9;
  text = " took more than " + time_text(static_cast<std::int64_t>(limit_seconds * ns_per_s)) +
         " in " + std::to_string(slow) + " of " + std::to_string(all) +
         " runs since the last look, up to " +
         time_text(static_cast<std::int64_t>(slowest * ns_per_s)) + ".";
  return true;
}

}  // namespace troupe::observing
