#include "http/server/numbers/request_counts.hpp"

#include <functional>
#include <new>

#include "base/clock.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::http {
namespace {

constexpr std::array seconds_bounds{1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
                                    5e-2, 0.1,  0.25, 0.5,    1.0,  2.5,  10.0};
constexpr double seconds_per_ns = 1e-9;

bool is_of(const request_series& series, const router::route* route, method by,
           int status_class) noexcept {
  return series.route == route && series.by == by && series.status_class == status_class;
}

}  // namespace

std::unique_ptr<observe::sharded_histogram> request_counts::make_others() {
  return std::make_unique<observe::sharded_histogram>(seconds_bounds);
}

request_counts::~request_counts() {
  // order: relaxed  no other thread is left
  for (auto& slot : slots_) delete slot.load(std::memory_order_relaxed);
}

request_series* request_counts::find(const router::route* route, method by,
                                     int status_class) noexcept {
  const std::size_t first = std::hash<const void*>{}(route) / alignof(router::route) * 0x9e3779b1 +
                            static_cast<std::size_t>(by) * 7 +
                            static_cast<std::size_t>(status_class);
  // order: acquire  pairs with the release below: the series is complete
  request_series* const series = slots_[first % slot_count].load(std::memory_order_acquire);
  if (series != nullptr && is_of(*series, route, by, status_class)) [[likely]]
    return series;
  return find_or_make(route, by, status_class, first);
}

TROUPE_NOINLINE request_series* request_counts::find_or_make(const router::route* route, method by,
                                                             int status_class,
                                                             std::size_t first) noexcept {
  std::unique_ptr<request_series> series;
  for (std::size_t i = 0; i < slot_count; ++i) {
    std::atomic<request_series*>& slot = slots_[(first + i) % slot_count];
    // order: acquire  pairs with the release below: the series is complete
    request_series* known = slot.load(std::memory_order_acquire);
    if (known == nullptr) {
      if (series == nullptr) {
        // order: relaxed  a limit; a slot publishes its series itself
        if (used_.fetch_add(1, std::memory_order_relaxed) >= series_max) {
          used_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  as above
          return nullptr;
        }
        series.reset(new (std::nothrow) request_series{route, by, status_class,
                                                       observe::sharded_histogram(seconds_bounds)});
        if (series == nullptr) return nullptr;
      }
      // order: release  publishes the series; pairs with the acquire above and in for_each
      // order: acquire  of the one that another thread has put there
      if (slot.compare_exchange_strong(known, series.get(), std::memory_order_acq_rel,
                                       std::memory_order_acquire))
        return series.release();
    }
    if (is_of(*known, route, by, status_class)) {
      // order: relaxed  as above
      if (series != nullptr) used_.fetch_sub(1, std::memory_order_relaxed);
      return known;
    }
  }
  return nullptr;
}

void request_counts::begin() noexcept {
  if (begun_here* const own = begun_.own()) [[likely]] {
    // order: relaxed (both)  a statistic, which no other thread writes
    own->requests.store(own->requests.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  } else {
    begun_.shared().requests.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  as above
  }
}

void request_counts::end(const router::route* route, method by, int status, double seconds,
                         request_series*& last) noexcept {
  const int status_class = status / 100;
  if (last == nullptr || !is_of(*last, route, by, status_class)) [[unlikely]]
    last = find(route, by, status_class);
  (last == nullptr ? *others_ : last->took).add(seconds);
}

// Requests may begin and end between the two looks.
std::uint64_t request_counts::in_flight() const noexcept {
  std::uint64_t ended = others_->count();
  for_each([&](const request_series& series) { ended += series.took.count(); });
  std::uint64_t begun = 0;
  // order: relaxed  a statistic
  begun_.for_each(
      [&](const begun_here& part) { begun += part.requests.load(std::memory_order_relaxed); });
  return begun > ended ? begun - ended : 0;
}

const observe::sharded_histogram* request_counts::others() const noexcept {
  return others_->count() == 0 ? nullptr : others_.get();
}

void counted_request::begin(request_counts& counts, const router::route* route,
                            method by) noexcept {
  if (is_counted()) [[unlikely]]
    end();
  is_counted_ = true;
  if (counts_ != &counts) [[unlikely]] {
    counts_ = &counts;
    last_ = nullptr;
  }
  route_ = route;
  by_ = by;
  status_ = 0;
  began_ns_ = base::now_ns();
  answered_ns_ = 0;
  counts.begin();
}

void counted_request::note_status(int status) noexcept {
  status_ = status;
  if (is_counted()) [[unlikely]]
    answered_ns_ = base::now_ns();
}

void counted_request::end() noexcept {
  is_counted_ = false;
  const std::int64_t ended_ns = answered_ns_ == 0 ? base::now_ns() : answered_ns_;
  const double seconds = static_cast<double>(ended_ns - began_ns_) * seconds_per_ns;
  counts_->end(route_, by_, status_, seconds, last_);
}

}  // namespace troupe::http
