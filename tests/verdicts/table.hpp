// The table of verdicts: what each error of each component answers to whose fault it was.
//
// A row has the type as a user writes it within namespace troupe, its kind, an error of it, and the
// verdict. check.py reads the rows in these sources, finds the types and kinds in the headers, and
// compares both with docs/protocols/verdicts.md.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe::test {

using enum verdict::party;
using enum verdict::effect;
using enum verdict::again;

struct verdict_row {
  const char* type;
  const char* kind;  // "": it has but one
  std::shared_ptr<const error> made;
  verdict expected;
};

template <class T, class... Args>
std::shared_ptr<const error> made(Args&&... args) {
  return std::make_shared<const T>(std::forward<Args>(args)...);
}

void expect_verdicts(std::initializer_list<verdict_row> rows);

}  // namespace troupe::test
