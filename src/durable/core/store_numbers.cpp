// The work of a store, in numbers: in the summary of its runtime and in /metrics.
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "durable/core/store_numbers.hpp"

namespace troupe::durable::parts {
namespace {

using store_counts = durable::counts;
template <auto Member>
auto count_of(const store_numbers& numbers) {
  return numbers.counts.*Member;
}

constexpr std::array seconds_bounds{1e-4,   2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                    2.5e-2, 5e-2,   0.1,  0.5,  2.0,    10.0};
constexpr std::array turns_bounds{1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0};

using observe::counter_of;
using observe::gauge_of;
using observe::histogram_of;
using observe::in_summary;
using observe::number_unit;
const observe::number_table<store_numbers> all_numbers{
    "troupe_durable",
    {"runtime", "store"},
    {counter_of<&count_of<&store_counts::turns>>(
         "turns", "Handlers of durable actors whose effects are stored."),
     counter_of<&count_of<&store_counts::messages>>("messages",
                                                    "Messages that came to durable actors."),
     counter_of<&count_of<&store_counts::failed_turns>>("failed_turns",
                                                        "Handlers of durable actors that threw."),
     counter_of<&count_of<&store_counts::retries>>(
         "retries", "How often a message waits to be handled once more."),
     counter_of<&count_of<&store_counts::dead_letters>>("dead_letters",
                                                        "Messages that failed too often."),
     counter_of<&count_of<&store_counts::reminders>>("reminders",
                                                     "Reminders whose message was sent."),
     counter_of<&count_of<&store_counts::commits>>("commits", "Transactions that were stored."),
     counter_of<&count_of<&store_counts::failed_commits>>("failed_commits",
                                                          "Transactions that were not stored."),
     counter_of<&count_of<&store_counts::loads>>("loads", "Actors read from the store."),
     counter_of<&count_of<&store_counts::unloaded>>(
         "unloaded",
         "Objects that were unloaded, since others needed the memory or they were idle."),
     gauge_of<&count_of<&store_counts::actors>>("actors", "Durable actors in memory."),
     in_summary("waiting",
                gauge_of<&count_of<&store_counts::waiting>>(
                    "waiting_messages", "Messages in memory that wait or are being handled.")),
     gauge_of<&count_of<&store_counts::is_away>>(
         "away", "1 if the last transaction failed and none was stored since."),
     histogram_of<&store_numbers::commit_time>(
         "commit_seconds", "Time from the begin of a transaction until it was stored."),
     histogram_of<&store_numbers::commit_turns>("commit_turns", "Turns that shared a transaction.",
                                                number_unit::one)}};

}  // namespace

void store_numbers::add_to(observe::row_sink& sink, const std::vector<std::string>& labels) const {
  store_numbers shown = *this;
  shown.commit_time.sum = std::chrono::duration<double>(counts.commit_time).count();
  shown.commit_turns.sum = static_cast<double>(counts.turns);
  sink.add(all_numbers, labels, shown);
}

void numbers::count_commit(std::uint64_t turns, std::int64_t took_ns) noexcept {
  ++counts.commits;
  counts.commit_time += std::chrono::nanoseconds(took_ns);
  commit_ns_.add(observe::value_counts::bucket_of(static_cast<std::uint64_t>(took_ns)), 1);
  commit_turns_.add(observe::value_counts::bucket_of(turns), 1);
}

store_numbers numbers::with_commits(const durable::counts& now) const {
  const auto seconds = [](double ns) { return ns / 1e9; };
  return {now, commit_ns_.spread_over(seconds_bounds, seconds),
          commit_turns_.spread_over(turns_bounds, std::identity{})};
}

}  // namespace troupe::durable::parts
