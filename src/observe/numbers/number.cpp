#include "observe/numbers/number.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::observe {
namespace {

// Before main, one thread: the constructors of static objects.
constinit const number_group* groups = nullptr;

}  // namespace

const char* name_of(number_kind kind) noexcept {
  switch (kind) {
    case number_kind::counter:
      return "counter";
    case number_kind::gauge:
      return "gauge";
    default:
      return "histogram";
  }
}

const char* name_of(number_unit unit) noexcept {
  switch (unit) {
    case number_unit::bytes:
      return "bytes";
    case number_unit::seconds:
      return "seconds";
    default:
      return "";
  }
}

std::uint64_t distribution::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

double distribution::quantile(double part) const noexcept {
  const std::uint64_t all = count();
  if (all == 0 || bounds.empty()) return 0;
  const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(all - 1)) + 1;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if ((seen += counts[i]) >= wanted) return bounds[i];
  }
  return bounds.back();
}

number_group::number_group(std::string_view prefix,
                           std::initializer_list<std::string_view> labels) noexcept
    : prefix_(prefix), labelled_(labels.size()), next_(groups) {
  std::ranges::copy(labels, labels_.begin());
  groups = this;
}

const number_group* number_group::first() noexcept { return groups; }

std::string number_group::metric(const number& described) const {
  std::string name(prefix_);
  name += '_';
  name += described.name;
  if (described.kind == number_kind::counter) name += "_total";
  return name;
}

}  // namespace troupe::observe
