#include "lint/syntax_tree.hpp"

#include <algorithm>
#include <charconv>

namespace troupe_tool {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Reads "…:LINE:COLUMN" from the end. Returns what stands before, or the whole text if it is none.
std::string_view read_number(std::string_view text, int& number) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return text;
  const std::string_view digits = text.substr(colon + 1);
  if (!std::ranges::all_of(digits, is_digit)) return text;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return text.substr(0, colon);
}

class reader {
 public:
  explicit reader(syntax_tree& tree) noexcept : tree_(tree) {}

  void read(std::string_view line) {
    const std::size_t start = indentation(line);
    if (start == std::string_view::npos) return;
    const std::size_t depth = start / 2;
    if (depth == 0) {
      // Each match is a dump of its own, which says its places anew.
      if (!line.contains(" 0x")) return;
      above_.clear();
      file_ = 0;
      line_ = column_ = 0;
    }
    if (depth > above_.size()) return;
    above_.resize(depth);
    add(line.substr(start));
  }

 private:
  // The number of characters before the node's kind: "| " or "  " for each level but the last,
  // which is "|-" or "`-".
  static std::size_t indentation(std::string_view line) noexcept {
    std::size_t at = 0;
    while (line.substr(at).starts_with("| ") || line.substr(at).starts_with("  ")) at += 2;
    if (line.substr(at).starts_with("|-") || line.substr(at).starts_with("`-")) return at + 2;
    return at == 0 && !line.empty() ? 0 : std::string_view::npos;
  }

  void add(std::string_view text) {
    syntax_node node;
    if (!text.starts_with("<<<")) {
      const std::size_t end = std::min(text.find(' '), text.size());
      node.kind = text.substr(0, end);
      node.details = text.substr(end);
      read_places(node);
    }
    const std::size_t number = tree_.nodes.size();
    if (above_.empty()) {
      tree_.roots.push_back(number);
    } else {
      node.parent = above_.back();
      tree_.nodes[node.parent].children.push_back(number);
    }
    above_.push_back(number);
    tree_.nodes.push_back(std::move(node));
  }

  // " 0x1234 [parent 0x… ] [prev 0x…] <FIRST[, LAST]> [PLACE OF THE NAME] …"
  void read_places(syntax_node& node) {
    std::string_view rest = node.details;
    while (rest.starts_with(" 0x") || rest.starts_with(" parent") || rest.starts_with(" prev")) {
      rest.remove_prefix(std::min(rest.find(' ', 1), rest.size()));
    }
    if (!rest.starts_with(" <")) return;
    rest.remove_prefix(2);
    const std::size_t end = end_of_range(rest);
    if (end == std::string_view::npos) return;
    const std::string_view range = rest.substr(0, end);
    node.details = rest.substr(end + 1);
    const std::size_t comma = range.find(", ");
    if (read_place(range.substr(0, comma))) {
      node.file = file_;
      node.line = line_;
      node.column = column_;
    }
    if (comma != std::string_view::npos) read_place(range.substr(comma + 2));
    if (node.kind.ends_with("Decl")) read_place_of_name(node.details);
  }

  // The '>' that ends a range, in which "<invalid sloc>" may stand.
  static std::size_t end_of_range(std::string_view text) noexcept {
    std::size_t open = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '<') ++open;
      if (text[i] != '>') continue;
      if (open == 0) return i;
      --open;
    }
    return std::string_view::npos;
  }

  void read_place_of_name(std::string_view details) {
    if (!details.starts_with(' ')) return;
    details.remove_prefix(1);
    const std::string_view word = details.substr(0, details.find(' '));
    const bool absolute = word.starts_with('/') || word.starts_with('.');
    if (word.starts_with("line:") || word.starts_with("col:") || absolute) read_place(word);
  }

  // "FILE:LINE:COLUMN", "line:LINE:COLUMN" or "col:COLUMN". Returns whether it is a place.
  bool read_place(std::string_view text) {
    if (text.starts_with("<invalid")) return false;
    const std::string_view rest = read_number(text, column_);
    if (rest == "col") return true;
    const std::string_view file = read_number(rest, line_);
    if (file == "line") return true;
    const auto known = std::ranges::find(tree_.files, file);
    file_ = static_cast<std::size_t>(known - tree_.files.begin());
    if (known == tree_.files.end()) tree_.files.emplace_back(file);
    return true;
  }

  syntax_tree& tree_;
  std::vector<std::size_t> above_;
  std::size_t file_ = 0;
  int line_ = 0, column_ = 0;
};

}  // namespace

syntax_tree read_syntax_tree(std::string_view dump) {
  syntax_tree tree;
  reader lines(tree);
  while (!dump.empty()) {
    const std::size_t end = std::min(dump.find('\n'), dump.size());
    lines.read(dump.substr(0, end));
    dump.remove_prefix(std::min(end + 1, dump.size()));
  }
  return tree;
}

bool is_expression(const syntax_node& node) noexcept {
  return node.kind.ends_with("Expr") || node.kind.ends_with("Operator") ||
         node.kind.ends_with("Literal") || node.kind == "ExprWithCleanups";
}

std::string_view type_of(const syntax_node& node) noexcept {
  const std::size_t open = node.details.find('\'');
  if (open == std::string_view::npos) return {};
  const std::string_view rest = node.details.substr(open + 1);
  return rest.substr(0, rest.find('\''));
}

}  // namespace troupe_tool
