// rules: the forms of coroutines that GCC 12 compiles wrongly, or not at all, in a syntax tree.
// docs/guide/performance.md ("Coroutines that GCC 12 miscompiles") lists them for readers;
// tests/tools/lint has each with the observed result of g++ 12.2.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "lint/syntax_tree.hpp"

namespace troupe_tool {

struct lint_finding {
  std::string file;
  int line = 0, column = 0;
  std::string wrong, instead;

  auto operator<=>(const lint_finding&) const = default;
};

// In the order of their places, each once: a template is in the tree with each of its instances.
std::vector<lint_finding> find_miscompiled_forms(const syntax_tree& tree);

}  // namespace troupe_tool
