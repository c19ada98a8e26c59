#include "stacks/frame.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace troupe_tool {
namespace {

std::string demangled_or_empty(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : "";
}

// g++ 12 names what it makes of a coroutine `_ZN…_ZN4Both9alternateEv.Frame.actor`, clang
// `_ZN4Both9alternateEv.resume`.
std::string name_of_coroutine(std::string_view symbol) {
  constexpr std::string_view endings[] = {".Frame", ".actor", ".destroy", ".resume"};
  for (const std::string_view ending : endings) {
    const std::size_t end = symbol.find(ending);
    if (end == std::string_view::npos) continue;
    for (std::size_t begin = symbol.rfind("_Z", end); begin != std::string_view::npos;
         begin = begin == 0 ? std::string_view::npos : symbol.rfind("_Z", begin - 1)) {
      const std::string name = demangled_or_empty(std::string(symbol.substr(begin, end - begin)));
      if (!name.empty()) return name;
    }
  }
  return "";
}

bool is_of_library(const frame& tested) {
  constexpr std::string_view beginnings[] = {
      "troupe::",    "std::",      "void troupe::", "void std::", "auto troupe::", "decltype(auto)",
      "_ZZN6troupe", "_ZN6troupe", "_ZNK6troupe",   "_ZSt",       "_ZNSt",         "_ZNKSt"};
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) {
    return tested.function.starts_with(beginning);
  });
}

bool is_of_troupe(const frame& tested) { return tested.function.starts_with("troupe::"); }

}  // namespace

std::string frame::text() const {
  return file.empty() ? function : fmt::format("{} at {}:{}", function, file, line);
}

std::string demangled(const char* symbol) {
  std::string name = demangled_or_empty(symbol);
  if (name.empty()) name = name_of_coroutine(symbol);
  if (!name.empty()) return name;
  const std::string_view plain(symbol);
  return std::string(plain.substr(0, plain.find('@')));  // without the version of a C function
}

std::vector<frame> without_library(std::vector<frame> all) {
  // From the thread's first function inwards: its start, then the library's, then a handler's.
  const auto begin = std::find_if(all.rbegin(), all.rend(), &is_of_troupe);
  const auto handler = std::find_if_not(begin, all.rend(), &is_of_library);
  if (begin != all.rend() && handler != all.rend()) all.erase(handler.base(), all.end());
  return all;
}

}  // namespace troupe_tool
