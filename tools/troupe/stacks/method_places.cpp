#include "stacks/method_places.hpp"

#ifdef TROUPE_TOOL_LIBDW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace troupe_tool {
namespace {

class method_search {
 public:
  explicit method_search(const std::set<std::string>& methods) noexcept : methods_(methods) {}

  // All that is declared in this unit.
  void look_at(Dwarf_Die* unit) {
    declared_.clear();
    look_inside(unit, "", 0);
  }
  // Whether nothing better can be found.
  bool is_complete() const noexcept { return defined_.size() == methods_.size(); }
  std::unordered_map<std::string, std::string> take() { return std::move(places_); }

 private:
  void look_inside(Dwarf_Die* around, const std::string& scope, int depth);
  void look_at_method(Dwarf_Die* method, const std::string& scope);
  void note(const std::string& name, Dwarf_Die* at, bool is_definition);

  const std::set<std::string>& methods_;
  std::unordered_map<Dwarf_Off, std::string> declared_;  // of this unit, by their offsets
  std::set<std::string> defined_;
  std::unordered_map<std::string, std::string> places_;
};

std::string scope_with(const std::string& scope, const char* name) {
  if (name == nullptr) return scope;  // an unnamed namespace
  return scope.empty() ? name : scope + "::" + name;
}

void method_search::look_inside(Dwarf_Die* around, const std::string& scope, int depth) {
  constexpr int depth_max = 32;
  Dwarf_Die die;
  if (depth == depth_max || ::dwarf_child(around, &die) != 0) return;
  do {
    switch (::dwarf_tag(&die)) {
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
        look_inside(&die, scope_with(scope, ::dwarf_diename(&die)), depth + 1);
        break;
      case DW_TAG_subprogram:
        look_at_method(&die, scope);
        break;
      default:
        break;
    }
  } while (::dwarf_siblingof(&die, &die) == 0);
}

// A method is declared in its class. If it is defined outside, or code was made of it, it is there
// once more outside, and refers to the declaration.
void method_search::look_at_method(Dwarf_Die* method, const std::string& scope) {
  Dwarf_Attribute memory;
  Dwarf_Attribute* const refers = ::dwarf_attr(method, DW_AT_specification, &memory);
  if (refers == nullptr) {
    const char* const name = ::dwarf_diename(method);
    if (name == nullptr) return;
    const std::string whole = scope_with(scope, name);
    if (!methods_.contains(whole)) return;
    declared_[::dwarf_dieoffset(method)] = whole;
    note(whole, method, false);
    return;
  }
  Dwarf_Die declaration;
  if (declared_.empty() || ::dwarf_hasattr(method, DW_AT_decl_line) == 0 ||
      ::dwarf_formref_die(refers, &declaration) == nullptr)
    return;
  const auto known = declared_.find(::dwarf_dieoffset(&declaration));
  if (known != declared_.end()) note(known->second, method, true);
}

void method_search::note(const std::string& name, Dwarf_Die* at, bool is_definition) {
  int line = 0;
  const char* const path = ::dwarf_decl_file(at);
  if (path == nullptr || ::dwarf_decl_line(at, &line) != 0) return;
  if (is_definition ? !defined_.insert(name).second : places_.contains(name)) return;
  const char* const last = std::strrchr(path, '/');
  places_[name] = fmt::format("{}:{}", last == nullptr ? path : last + 1, line);
}

}  // namespace

std::unordered_map<std::string, std::string> find_methods(Dwfl* program,
                                                          const std::set<std::string>& methods) {
  method_search search(methods);
  Dwarf_Die* unit = nullptr;
  Dwarf_Addr bias = 0;
  while (!search.is_complete() && (unit = ::dwfl_nextcu(program, unit, &bias)) != nullptr)
    search.look_at(unit);
  return search.take();
}

}  // namespace troupe_tool

#endif
