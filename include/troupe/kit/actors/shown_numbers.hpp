// shown_numbers: the counts of pools, caches, circuit breakers and topics among a program's
// numbers.
#pragma once

#include "troupe/base/language.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "troupe/kit/actors/topic_core.hpp"
#include "troupe/kit/cache_core.hpp"
#include "troupe/kit/circuit_breaker.hpp"
#include "troupe/kit/pool_core.hpp"

namespace troupe {

namespace observe {

class number_source;

}  // namespace observe

// While it lives, the counts of one pool, cache, circuit_breaker or topic are in /metrics, in
// `troupe top` and on the page of an observed program, with its name as a label. It holds a copy of
// that object, which it keeps alive. Two of one kind need different names: a second one throws
// usage_error.
//
// Thread: any. Cost: none, until the numbers are read.
//
// Example:
//     int main() {
//       troupe::runtime rt;
//       troupe::pool<int> numbers({}, [] { return 1; });
//       const troupe::shown_numbers shown("numbers", numbers);
//       rt.run();
//     }
class shown_numbers {
 public:
  template <class Counted>
  requires requires(const Counted& source) { source.counts(); }
  shown_numbers(std::string name, Counted source)
      : shown_numbers(std::move(name),
                      std::function([source = std::move(source)] { return source.counts(); })) {}
  shown_numbers(shown_numbers&&) noexcept;
  shown_numbers& operator=(shown_numbers&&) noexcept;
  ~shown_numbers();

 private:
  shown_numbers(std::string name, std::function<pool_counts()> reads);
  shown_numbers(std::string name, std::function<cache_counts()> reads);
  shown_numbers(std::string name, std::function<circuit_counts()> reads);
  shown_numbers(std::string name, std::function<topic_counts()> reads);

  std::unique_ptr<observe::number_source> source_;
};

}  // namespace troupe
