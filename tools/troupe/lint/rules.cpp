#include "lint/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

namespace troupe_tool {
namespace {

using kinds = std::initializer_list<std::string_view>;

bool is_any(const syntax_node& node, kinds names) {
  return std::ranges::find(names, node.kind) != names.end();
}
bool is_await(const syntax_node& node) {
  return is_any(node, {"CoawaitExpr", "DependentCoawaitExpr", "CoyieldExpr"});
}
bool is_member_list(const syntax_node& node) {
  return is_any(node, {"InitListExpr", "CXXParenListInitExpr"});
}
bool is_conditional(const syntax_node& node) {
  return is_any(node, {"ConditionalOperator", "BinaryConditionalOperator"});
}
bool is_cast(const syntax_node& node) {
  return is_any(
      node, {"ImplicitCastExpr", "CStyleCastExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr"});
}
bool is_wrapper(const syntax_node& node) {
  return is_any(node, {"ExprWithCleanups", "ParenExpr", "MaterializeTemporaryExpr"});
}
bool is_operator(const syntax_node& node, std::string_view name) {
  return node.kind == "BinaryOperator" && node.details.ends_with(name);
}
bool is_logical(const syntax_node& node) {
  return is_operator(node, "'&&'") || is_operator(node, "'||'");
}

// The rules look at one full expression at a time: all that is evaluated between two statements,
// whose temporaries GCC 12 keeps in the coroutine's frame if a co_await is among them.
class linter {
 public:
  explicit linter(const syntax_tree& tree) : tree_(tree) {}

  std::vector<lint_finding> run() {
    for (const std::size_t root : tree_.roots) walk(root);
    return {found_.begin(), found_.end()};
  }

 private:
  using index = std::size_t;
  const syntax_node& at(index node) const { return tree_[node]; }

  // Statements and declarations, down to full expressions.
  void walk(index node) {
    const syntax_node& current = at(node);
    if (current.kind == "CoroutineBodyStmt") {
      // The first child is what the user wrote; the rest calls the promise.
      if (current.children.empty()) return;
      if (!is_lambda(current.parent)) check_conditions(current.children.front());
      walk(current.children.front());
      return;
    }
    for (const index child : current.children) {
      if (is_expression(at(child))) {
        check_full_expression(child);
        walk_lambdas(child);
      } else {
        walk(child);
      }
    }
  }

  void walk_lambdas(index node) {
    for (const index child : at(node).children) {
      if (is_expression(at(child))) {
        walk_lambdas(child);
      } else {
        walk(child);
      }
    }
  }

  // What is evaluated with this expression: not the bodies of its lambdas, and what an await is
  // made of only once, for clang has its operand several times.
  std::vector<index> evaluated(index node) const {
    std::vector<index> parts;
    std::size_t count = at(node).children.size();
    if (at(node).kind == "CoyieldExpr") {
      count = std::min<std::size_t>(count, 2);
    } else if (is_await(at(node))) {
      count = std::min<std::size_t>(count, 1);
    }
    for (const index child : at(node).children | std::views::take(count)) {
      if (is_expression(at(child))) parts.push_back(child);
    }
    return parts;
  }

  bool awaits(index node) const {
    if (is_await(at(node))) return true;
    return std::ranges::any_of(evaluated(node), [this](index part) { return awaits(part); });
  }

  void check_full_expression(index root) {
    if (!awaits(root)) return;
    check_named_aggregate(root);
    check_parts(root);
  }

  void check_parts(index node) {
    const syntax_node& current = at(node);
    if (current.kind == "CXXBindTemporaryExpr") check_temporary(node);
    if (current.kind == "LambdaExpr") check_closure(node);
    if (current.kind == "CXXNewExpr") check_new(node);
    if (current.kind == "CXXStdInitializerListExpr") {
      report(node, "g++ 12 does not compile a list of values in an expression with co_await",
             "name the list first: `std::vector<T> list{…};`, then move it in");
    }
    if (is_conditional(current)) check_conditional(node);
    if (is_conditional(current) || is_logical(current)) check_branches(node);
    for (const index part : evaluated(node)) check_parts(part);
  }

  // clang binds a temporary if its destructor does something.
  void check_temporary(index node) {
    if (at(node).children.empty() || !is_member_list(at(at(node).children.front()))) return;
    index parent = at(node).parent;
    while (parent != syntax_node::none && (is_wrapper(at(parent)) || is_cast(at(parent))))
      parent = at(parent).parent;
    const std::string_view type = type_of(at(node));
    if (parent != syntax_node::none && at(parent).kind == "CXXDefaultArgExpr") {
      report(
          parent,
          fmt::format("the default argument is an aggregate `{}`, which g++ 12 destroys twice in "
                      "an expression with co_await",
                      type),
          fmt::format("name it first: `{} value;`, and pass `std::move(value)`", type));
      return;
    }
    report(node,
           fmt::format("g++ 12 destroys this temporary `{}` twice: an aggregate in an expression "
                       "with co_await",
                       type),
           fmt::format("name it first: `{} value{{…}};`, and pass `std::move(value)`", type));
  }

  void check_closure(index node) {
    if (!has_destructor(node)) return;
    report(node,
           "g++ 12 destroys the captures of this lambda twice: a closure in an expression with "
           "co_await",
           "name it first: `auto function = […] {…};`, and pass `std::move(function)`");
  }

  bool has_destructor(index lambda) const {
    const index parent = at(lambda).parent;
    if (parent != syntax_node::none && at(parent).kind == "CXXBindTemporaryExpr") return true;
    // Within a template clang binds nothing of a type that it does not know.
    for (const index closure : at(lambda).children) {
      if (at(closure).kind != "CXXRecordDecl") continue;
      for (const index data : at(closure).children) {
        if (at(data).kind != "DefinitionData") continue;
        for (const index function : at(data).children) {
          if (at(function).kind == "Destructor" && at(function).details.contains("non_trivial"))
            return true;
        }
      }
    }
    return false;
  }

  void check_new(index node) {
    for (const index part : evaluated(node)) {
      if (is_member_list(at(part)) && has_temporary(part)) {
        report(node,
               "g++ 12 destroys the members of this aggregate twice: `new T{…}` in an expression "
               "with co_await",
               "name the awaited values first, or use std::make_unique");
      }
    }
  }

  bool has_temporary(index node) const {
    if (at(node).kind == "CXXBindTemporaryExpr") return true;
    return std::ranges::any_of(evaluated(node), [this](index part) { return has_temporary(part); });
  }

  // `Pair both{co_await f(), co_await g()};`
  void check_named_aggregate(index root) {
    const index parent = at(root).parent;
    if (parent == syntax_node::none || at(parent).kind != "VarDecl") return;
    if (!at(parent).details.contains(" destroyed")) return;
    index list = root;
    while (is_wrapper(at(list)) && !at(list).children.empty()) list = at(list).children.front();
    if (!is_member_list(at(list))) return;
    report(parent,
           "g++ 12 destroys the members of this aggregate twice: its initializer has a co_await",
           "name each awaited value first, and move it in");
  }

  // A `?:` that makes an object with a destructor.
  void check_conditional(index node) {
    const auto& children = at(node).children;
    const auto branches = children | std::views::drop(1);
    if (!std::ranges::any_of(branches, [this](index arm) { return makes_temporary(arm); })) return;
    report(node,
           fmt::format("g++ 12 destroys the `{}` of this `?:` twice: it makes a temporary in an "
                       "expression with co_await",
                       type_of(at(node))),
           "name it first: `auto value = condition ? … : …;`, or use if, and pass "
           "`std::move(value)`");
  }

  bool makes_temporary(index arm) const {
    const syntax_node& current = at(arm);
    if (current.kind == "CXXBindTemporaryExpr") return true;
    if (current.children.empty()) return false;
    if (is_conditional(current)) {
      return std::ranges::any_of(current.children | std::views::drop(1),
                                 [this](index inner) { return makes_temporary(inner); });
    }
    // A conversion to a scalar or a reference makes nothing that is destroyed.
    if (current.kind == "ParenExpr" ||
        (is_cast(current) && type_of(current) == type_of(at(current.children[0]))))
      return makes_temporary(current.children.front());
    return is_cast(current) && current.details.contains("ConstructorConversion") &&
           makes_temporary(current.children.front());
  }

  // A co_await that is evaluated only sometimes. GCC 12 makes statements of `?:`, `&&` and `||`
  // where they are a whole initializer, assignment, statement or condition of an `if`; elsewhere
  // it evaluates the co_await always.
  void check_branches(index node) {
    const auto& children = at(node).children;
    if (children.size() < 2) return;
    const auto sometimes = children | std::views::drop(1);
    if (!std::ranges::any_of(sometimes, [this](index arm) { return awaits(arm); })) return;
    if (becomes_statement(node, is_logical(at(node)))) return;
    report(node,
           fmt::format("g++ 12 evaluates the co_await in this `{}` even if its branch is not taken",
                       is_conditional(at(node))             ? "?:"
                       : at(node).details.ends_with("'&&'") ? "&&"
                                                            : "||"),
           "use an if statement: `T value = …; if (condition) value = co_await …;`");
  }

  bool becomes_statement(index node, bool logical) const {
    const index parent = at(node).parent;
    if (parent == syntax_node::none) return false;
    const syntax_node& above = at(parent);
    if (!is_expression(above)) return is_statement_place(node, parent);
    if (is_wrapper(above) || above.details.contains("prefix '!'"))
      return becomes_statement(parent, logical);
    if (is_cast(above))
      return (!logical || keeps_bool(above)) && becomes_statement(parent, logical);
    if (above.kind == "InitListExpr" && above.children.size() == 1)
      return becomes_statement(parent, logical);
    if (is_operator(above, "'='"))
      return above.children.back() == node && becomes_statement(parent, logical);
    if (is_conditional(above)) return becomes_statement(parent, false);
    if (is_logical(above))
      return (above.children.back() == node || awaits(above.children.back())) &&
             becomes_statement(parent, true);
    return false;
  }

  static bool keeps_bool(const syntax_node& cast) {
    const std::string_view type = type_of(cast);
    return type == "bool" || type == "const bool" || type == "void";
  }

  // Whether a full expression stands where GCC 12 makes a statement of it.
  bool is_statement_place(index root, index parent) const {
    const syntax_node& above = at(parent);
    const auto position = std::ranges::find(above.children, root) - above.children.begin();
    const bool last = above.children.back() == root;
    if (above.kind == "WhileStmt") return last;
    if (above.kind == "DoStmt") return position == 0;
    if (above.kind == "ForStmt") return last || position == 0;
    if (above.kind == "VarDecl") return true;
    return above.kind.ends_with("Stmt") && !is_any(above, {"CoreturnStmt", "ReturnStmt"});
  }

  // A function that is the body of a lambda; its type begins with `auto` whatever it returns.
  bool is_lambda(index function) const {
    if (function == syntax_node::none) return false;
    return at(function).kind == "LambdaExpr" ||
           at(function).details.contains(" operator() 'auto (");
  }

  // GCC's bug 106188: the frame of a coroutine that is no lambda, and has no variable and no lambda
  // in its body, is laid out wrongly if it awaits in a condition.
  void check_conditions(index body) {
    if (has_variable(body)) return;
    for (const index condition : conditions_with_await(body)) {
      report(condition,
             "g++ 12 lays out the frame wrongly: the coroutine awaits in a condition and has no "
             "variable",
             "name the result: `const bool ok = co_await …;`, then `if (ok)`");
    }
  }

  bool has_variable(index node) const {
    return std::ranges::any_of(at(node).children, [this](index child) {
      return is_any(at(child), {"VarDecl", "DecompositionDecl", "LambdaExpr"}) ||
             has_variable(child);
    });
  }

  std::vector<index> conditions_with_await(index node) const {
    std::vector<index> found;
    const syntax_node& current = at(node);
    const bool branches =
        is_any(current, {"IfStmt", "WhileStmt", "DoStmt", "ForStmt", "SwitchStmt"});
    for (const index child : current.children) {
      if (!is_expression(at(child))) {
        std::ranges::copy(conditions_with_await(child), std::back_inserter(found));
      } else if (branches && is_condition(node, child) && awaits(child)) {
        found.push_back(child);
      }
    }
    return found;
  }

  bool is_condition(index statement, index child) const {
    const auto& children = at(statement).children;
    if (at(statement).kind == "DoStmt") return children.back() == child;
    if (at(statement).kind == "ForStmt") return children.size() > 2 && children[2] == child;
    return children.front() == child;
  }

  // At the place of the node, or of what is around it where the node has none.
  void report(index node, std::string wrong, std::string instead) {
    index shown = node;
    while (shown != syntax_node::none && !is_place(at(shown))) shown = at(shown).parent;
    if (shown == syntax_node::none) return;
    const syntax_node& place = at(shown);
    found_.insert(
        {tree_.files[place.file], place.line, place.column, std::move(wrong), std::move(instead)});
  }

  bool is_place(const syntax_node& node) const {
    const std::string& file = tree_.files[node.file];
    return node.file != 0 && !file.starts_with('<') && !file.starts_with("/usr/") &&
           !file.contains("/include/troupe/");
  }

  const syntax_tree& tree_;
  std::set<lint_finding> found_;
};

}  // namespace

std::vector<lint_finding> find_miscompiled_forms(const syntax_tree& tree) {
  return linter(tree).run();
}

}  // namespace troupe_tool
