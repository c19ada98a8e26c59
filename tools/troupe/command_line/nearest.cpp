#include "command_line/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace troupe_tool {
namespace {

// How many characters must be inserted, removed, replaced, or exchanged with the next one.
std::size_t distance(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> rows(left.size() + 1,
                                             std::vector<std::size_t>(right.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const bool same = left[i - 1] == right[j - 1];
      rows[i][j] =
          std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[left.size()][right.size()];
}

}  // namespace

std::string nearest_of(std::string_view word, std::span<const std::string> names) {
  constexpr std::size_t length_max = 200;  // the distance takes time by both lengths
  if (word.size() > length_max) return "";
  std::string found;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    if (name.size() > length_max) continue;
    if (const std::size_t far = distance(word, name); far < least) {
      least = far;
      found = name;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string name = nearest_of(word, names);
  return name.empty() ? "" : " (did you mean " + name + "?)";
}

}  // namespace troupe_tool
