// instruments: a program's own numbers, beside the library's: in /metrics, in the answers of an
// observed program, in `troupe top` and on the page.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"

namespace troupe {

namespace observe {

class instrument;
class counter_series;
class gauge_series;
class histogram_series;

}  // namespace observe

// Label values beyond so many combinations of one number are counted together, in one series whose
// labels are all "(others)"; `troupe_overflowing_series_total` counts how often that was.
inline constexpr std::size_t series_max_default = 1'000;

// The labels and buckets of a number of your own.
struct instrument_options {
  std::vector<std::string> labels = {};  // their names, at most 8: they distinguish series
  std::size_t series_max = series_max_default;
  // For a histogram: the greatest value of each bucket, rising, 1 to 31 of them. Empty: 14 bounds
  // from 0.5 ms to 10 s.
  std::vector<double> bounds = {};
};

// A sum that never falls. Copies are the same number, as is a counter that is made with the same
// name; it is shown for as long as one of them lives. The constructor throws usage_error if the
// name is none for Prometheus, begins with "troupe_" or "process_", or was declared otherwise, and
// if there is no help.
//
// Thread: any. Cost: about 9 ns, of a histogram 18 ns; threads do not disturb each other.
//
// Example:
//     static troupe::counter orders("shop_orders", "Orders that were placed.");
//     orders.add();
//     static troupe::counter sold("shop_sold", "Things that were sold.", {.labels = {"kind"}});
//     sold.with({"book"}).add(3);
//     std::cout << orders.value() << " order\n";
class counter {
 public:
  // One combination of the labels' values. Lifetime: as its counter.
  class series {
   public:
    void add(std::uint64_t n = 1) noexcept;
    std::uint64_t value() const noexcept;

   private:
    friend class counter;
    explicit series(observe::counter_series* values) noexcept : values_(values) {}
    observe::counter_series* values_;
  };

  // The metric has "_total" behind the name. `help` is one sentence.
  counter(std::string name, std::string help)
      : counter(std::move(name), std::move(help), instrument_options()) {}
  counter(std::string name, std::string help, instrument_options chosen);

  void add(std::uint64_t n = 1) noexcept { own_.add(n); }
  std::uint64_t value() const noexcept { return own_.value(); }
  // A look-up under a lock, of about 100 ns: keep the result where it counts. Values that are no
  // constants of the program (names of users, paths) make too many series. Throws usage_error for
  // another number of values than there are labels.
  series with(std::initializer_list<std::string_view> values);

 private:
  std::shared_ptr<observe::instrument> instrument_;
  series own_;  // of the calls without labels
};

// A state that rises and falls. Otherwise as a counter.
//
// Example:
//     static troupe::gauge open("shop_open_orders", "Orders that are not delivered.");
//     open.add(2);
//     open.add(-1);
//     open.set(0);
class gauge {
 public:
  class series {
   public:
    void set(double value) noexcept;
    void add(double more) noexcept;
    double value() const noexcept;

   private:
    friend class gauge;
    explicit series(observe::gauge_series* values) noexcept : values_(values) {}
    observe::gauge_series* values_;
  };

  gauge(std::string name, std::string help)
      : gauge(std::move(name), std::move(help), instrument_options()) {}
  gauge(std::string name, std::string help, instrument_options chosen);

  void set(double value) noexcept { own_.set(value); }
  void add(double more) noexcept { own_.add(more); }
  double value() const noexcept { return own_.value(); }
  series with(std::initializer_list<std::string_view> values);

 private:
  std::shared_ptr<observe::instrument> instrument_;
  series own_;
};

// How often values of each size were seen, and their sum: times in seconds, sizes in bytes. The
// name ends in the unit. Otherwise as a counter.
//
// Example:
//     static troupe::histogram packing("shop_packing_seconds", "Time that packing an order took.");
//     packing.record(std::chrono::milliseconds(3));
//     packing.record(0.25);
class histogram {
 public:
  class series {
   public:
    void record(double value) noexcept;
    void record(time_span span) noexcept { record(std::chrono::duration<double>(span).count()); }
    std::uint64_t count() const;

   private:
    friend class histogram;
    explicit series(observe::histogram_series* values) noexcept : values_(values) {}
    observe::histogram_series* values_;
  };

  histogram(std::string name, std::string help)
      : histogram(std::move(name), std::move(help), instrument_options()) {}
  histogram(std::string name, std::string help, instrument_options chosen);

  void record(double value) noexcept { own_.record(value); }
  void record(time_span span) noexcept { own_.record(span); }
  std::uint64_t count() const { return own_.count(); }
  series with(std::initializer_list<std::string_view> values);

 private:
  std::shared_ptr<observe::instrument> instrument_;
  series own_;
};

}  // namespace troupe
