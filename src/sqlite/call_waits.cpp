#include "sqlite/call_waits.hpp"

#include <array>
#include <exception>

#include "base/clock.hpp"
#include "database/statement_counts.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/sqlite/counted_call.hpp"

namespace troupe::sqlite {
namespace {

constexpr std::array seconds_bounds{1e-5,   5e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                    2.5e-2, 0.1,  0.25, 0.5,  1.0,  2.5,    10.0};
constexpr double ns_per_second = 1e9;

struct seen_waits {
  std::uint64_t waiting;
  observe::distribution waited;
  std::chrono::nanoseconds locked;
};
const observe::number_table<seen_waits> wait_numbers{
    "troupe_sqlite",
    {"connection"},
    {observe::gauge_of<&seen_waits::waiting>(
         "waiting_calls",
         "Calls that wait for a transaction of others or for the connection's thread."),
     observe::histogram_of<&seen_waits::waited>(
         "wait_seconds",
         "How long calls waited for others' transactions and for the connection's thread, or until "
         "they gave up."),
     observe::counter_of<&seen_waits::locked>(
         "lock_wait_seconds", "Time in which statements waited for others' locks of the file.",
         observe::number_unit::seconds)}};

}  // namespace

call_waits::call_waits(const std::string& path)
    : waited_(seconds_bounds),
      shown_(
          wait_numbers, path,
          [this](observe::row_sink& sink, const std::string& name) { collect(sink, name); },
          observe::number_source::same_name::number) {}

void call_waits::begin() noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a statistic
}

void call_waits::end(std::chrono::nanoseconds waited) noexcept {
  waiting_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  a statistic
  waited_.add(static_cast<double>(waited.count()) / ns_per_second);
}

void call_waits::note_lock(std::chrono::nanoseconds waited) noexcept {
  lock_ns_.fetch_add(waited.count(), std::memory_order_relaxed);  // order: relaxed  a statistic
}

void call_waits::collect(observe::row_sink& sink, const std::string& name) const {
  // order: relaxed (both)  statistics
  sink.add(wait_numbers, {name},
           {static_cast<std::uint64_t>(waiting_.load(std::memory_order_relaxed)), waited_.get(),
            std::chrono::nanoseconds(lock_ns_.load(std::memory_order_relaxed))});
}

namespace parts {

counted_wait::counted_wait(std::shared_ptr<call_waits> waits) noexcept {
  if (!observe::is_watched(observe::watched::counts)) return;
  waits_ = std::move(waits);
  began_ns_ = base::now_ns();
  waits_->begin();
}

void counted_wait::end() noexcept {
  if (const auto waits = std::exchange(waits_, nullptr))
    waits->end(std::chrono::nanoseconds(base::now_ns() - began_ns_));
}

counted_statement::counted_statement(const std::string& text) noexcept
    : text_(text),
      began_ns_(database::statement_begins()),
      exceptions_(std::uncaught_exceptions()) {}
counted_statement::~counted_statement() {
  database::statement_ends("sqlite", text_, began_ns_, std::uncaught_exceptions() > exceptions_);
}

}  // namespace parts
}  // namespace troupe::sqlite
