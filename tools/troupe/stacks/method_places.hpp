// method_places: where the methods of classes are in the source, by the debug information of a
// program's files.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

struct Dwfl;

namespace troupe_tool {

// "bank.cpp:12" for each of these methods ("bank::Account::deposit") that is found; without the
// names of templates' arguments it finds none. The definition counts, and only without one the
// declaration. A method that is overloaded has the place of one of them.
std::unordered_map<std::string, std::string> find_methods(Dwfl* program,
                                                          const std::set<std::string>& methods);

}  // namespace troupe_tool
