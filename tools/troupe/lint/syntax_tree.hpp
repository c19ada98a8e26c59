// syntax_tree: the functions that clang-query has dumped as text, as trees.
//
// clang prints a node on a line, its depth as the indentation, and leaves out of a location what is
// as in the location before: a file, then a line. The text is read in one pass.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe_tool {

struct syntax_node {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::string_view kind;     // "CallExpr"; empty where clang has a null node
  std::string_view details;  // the rest of the line
  std::size_t file = 0;      // in syntax_tree::files; 0 is "no place"
  int line = 0, column = 0;
  std::size_t parent = none;
  std::vector<std::size_t> children;
};

// The nodes of all functions of one text, each behind its parent. Lifetime: the text outlives it.
struct syntax_tree {
  std::vector<syntax_node> nodes;
  std::vector<std::string> files{""};
  std::vector<std::size_t> roots;

  const syntax_node& operator[](std::size_t node) const { return nodes[node]; }
};

syntax_tree read_syntax_tree(std::string_view dump);

// An expression, unlike a statement, a declaration or what describes one.
bool is_expression(const syntax_node& node) noexcept;
// The type that clang prints with an expression: the text of the first pair of quotes.
std::string_view type_of(const syntax_node& node) noexcept;

}  // namespace troupe_tool
