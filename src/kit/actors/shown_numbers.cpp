#include "troupe/kit/actors/shown_numbers.hpp"

#include "kit/actors/pool_numbers.hpp"
#include "observe/numbers/registry.hpp"

namespace troupe {
namespace {

using observe::counter_of;
using observe::gauge_of;
using observe::number_source;
using observe::number_table;

observe::distribution waits_of(const pool_counts& counts) {
  return {pool_wait_seconds,
          {counts.waits.begin(), counts.waits.end()},
          std::chrono::duration<double>(counts.waited).count()};
}

const number_table<pool_counts> pool_numbers{
    "troupe_pool",
    {"pool"},
    {gauge_of<&pool_counts::idle>("idle", "Resources that wait to be used."),
     gauge_of<&pool_counts::in_use>("in_use", "Resources that are lent, being checked or made."),
     shows(observe::trouble::pool_exhausted,
           gauge_of<&pool_counts::waiting>("waiting", "Parties that wait for a resource.")),
     counter_of<&pool_counts::lent>("lent", "How often a resource was lent."),
     counter_of<&pool_counts::made>("made", "Resources that were made."),
     counter_of<&pool_counts::failed>("failed", "Attempts to make a resource that threw."),
     counter_of<&pool_counts::destroyed>("destroyed", "Resources that were destroyed."),
     observe::histogram_of<&waits_of>(
         "wait_seconds", "How long callers waited for a resource, or until they gave up.")}};

const number_table<cache_counts> cache_numbers{
    "troupe_cache",
    {"cache"},
    {gauge_of<&cache_counts::entries>("entries", "Entries, with kept failures and expired ones."),
     counter_of<&cache_counts::hits>("hits", "Look-ups that found an entry."),
     counter_of<&cache_counts::misses>("misses", "Look-ups that found none."),
     counter_of<&cache_counts::joined>("joined",
                                       "Misses that waited for a load that had begun already."),
     counter_of<&cache_counts::loads>("loads", "Loads that were begun."),
     counter_of<&cache_counts::failed>("failed", "Loads that threw."),
     counter_of<&cache_counts::evicted>("evicted",
                                        "Entries that were removed, since there were too many."),
     counter_of<&cache_counts::expired>("expired",
                                        "Entries that were removed, since their time was over.")}};

// 0 closed, 1 half open, 2 open: the worse, the greater.
std::uint64_t state_of(const circuit_counts& counts) {
  if (counts.state == circuit::closed) return 0;
  return counts.state == circuit::half_open ? 1 : 2;
}
const number_table<circuit_counts> circuit_numbers{
    "troupe_circuit",
    {"breaker"},
    {gauge_of<&state_of>("state", "0 if calls pass, 1 for a few trials, 2 if calls are refused."),
     gauge_of<&circuit_counts::succeeded>("succeeded", "Calls within the window that succeeded."),
     gauge_of<&circuit_counts::failed>("failed", "Calls within the window that failed."),
     counter_of<&circuit_counts::refused>("refused", "Calls that were refused."),
     counter_of<&circuit_counts::opened>("opened", "How often the circuit opened.")}};

const number_table<topic_counts> topic_numbers{
    "troupe_topic",
    {"topic"},
    {gauge_of<&topic_counts::subscribers>("subscribers", "Subscribers of the topic."),
     counter_of<&topic_counts::published>("published", "Values that were published."),
     counter_of<&topic_counts::told>("told", "Messages that were sent to subscribers."),
     counter_of<&topic_counts::missed>("missed", "Messages that a full mailbox refused.")}};

template <class Counts>
std::unique_ptr<number_source> make(
    const number_table<Counts>& numbers, std::string name, std::function<Counts()> reads,
    number_source::same_name taken = number_source::same_name::refuse) {
  const auto read = [&numbers, reads = std::move(reads)](observe::row_sink& rows,
                                                         const std::string& name_of_source) {
    rows.add(numbers, {name_of_source}, reads());
  };
  return std::make_unique<number_source>(numbers, std::move(name), read, taken);
}

}  // namespace

std::shared_ptr<const void> kit::show_pool(std::string name, std::function<pool_counts()> reads) {
  return make(pool_numbers, std::move(name), std::move(reads), number_source::same_name::number);
}

shown_numbers::shown_numbers(std::string name, std::function<pool_counts()> reads)
    : source_(make(pool_numbers, std::move(name), std::move(reads))) {}
shown_numbers::shown_numbers(std::string name, std::function<cache_counts()> reads)
    : source_(make(cache_numbers, std::move(name), std::move(reads))) {}
shown_numbers::shown_numbers(std::string name, std::function<circuit_counts()> reads)
    : source_(make(circuit_numbers, std::move(name), std::move(reads))) {}
shown_numbers::shown_numbers(std::string name, std::function<topic_counts()> reads)
    : source_(make(topic_numbers, std::move(name), std::move(reads))) {}
shown_numbers::shown_numbers(shown_numbers&&) noexcept = default;
shown_numbers& shown_numbers::operator=(shown_numbers&&) noexcept = default;
shown_numbers::~shown_numbers() = default;

}  // namespace troupe
