#include "runtime/exploring/source_lines.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

using sched::exploring::code_address;

// A function and its place; an address in inlined functions has several, the innermost first.
struct frame {
  std::string function, place;
};
using frames = std::vector<frame>;
// A module's path and an address in it.
using key = std::pair<std::string, std::uint64_t>;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + '\'';
}

struct close_program {
  void operator()(std::FILE* output) const noexcept { ::pclose(output); }
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, close_program> output(::popen(command.c_str(), "re"));
  std::string text;
  if (output == nullptr) return text;
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), output.get()))
    text.append(part.data(), count);
  return text;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "file:12 (discriminator 3)" and "file:?" have no use as they are.
std::string place_of_line(std::string_view line) {
  line = line.substr(0, line.find(" ("));
  if (line.starts_with("??") || line.ends_with(":?") || line.ends_with(":0")) return "";
  const std::string folder = std::filesystem::current_path().string() + '/';
  return std::string(line.starts_with(folder) ? line.substr(folder.size()) : line);
}

// The program writes an address, and then two lines for each function.
void parse(std::string_view text, const std::string& module, std::map<key, frames>& known) {
  frames* current = nullptr;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("0x")) {
      current = &known[{module, std::strtoull(std::string(line).c_str(), nullptr, 16)}];
    } else if (current != nullptr) {
      current->push_back({std::string(line), place_of_line(take_line(text))});
    }
  }
}

void ask(const std::string& module, const std::set<std::uint64_t>& offsets,
         std::map<key, frames>& known) {
  constexpr std::size_t at_once = 2'000;  // as many as a command line takes
  std::string addresses;
  std::size_t count = 0;
  for (const std::uint64_t offset : offsets) {
    known.try_emplace({module, offset});
    if (count++ < at_once) addresses += ' ' + hex(offset);
  }
  for (const char* const program : {"addr2line", "llvm-addr2line"}) {
    const std::string text = output_of(std::string(program) + " -afCi -e " + quoted(module) +
                                       addresses + " 2>/dev/null");
    parse(text, module, known);
    if (!text.empty()) return;
  }
}

// The name of a function without the type that it returns, which is written for templates.
std::string_view name_of(std::string_view function) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '(' && depth == 0 && !function.substr(i).starts_with("(anonymous namespace)")) {
      function = function.substr(0, i);
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return function.substr(begin);
}

// The library, the standard library, and the parts of either that the compiler made.
bool is_of_library(const frame& at) {
  const std::string_view place = at.place, name = name_of(at.function);
  for (const char* const folder : {"/include/troupe/", "/include/c++/", "/usr/include/"}) {
    if (place.find(folder) != std::string_view::npos) return true;
  }
  if (place.starts_with("include/troupe/")) return true;
  const bool is_named = name.starts_with("troupe::") || name.starts_with("std::");
  if (place.empty()) return is_named || name.starts_with("??") || name.starts_with('_');
  const bool is_source = place.starts_with("src/") || place.find("/src/") != std::string_view::npos;
  return is_named && is_source;
}

// Calls that a timer or an event makes have no sender but the loop.
bool is_loop(const frame& at) {
  return at.function.starts_with("troupe::runtime::run") ||
         at.function.starts_with("troupe::runtime_core::run");
}

std::string place_in(const std::vector<std::string>& modules,
                     const std::vector<code_address>& callers, const std::map<key, frames>& known) {
  for (const code_address& caller : callers) {
    if (caller.module >= modules.size()) continue;
    const auto found = known.find({modules[caller.module], caller.offset});
    if (found == known.end()) continue;
    for (const frame& at : found->second) {
      if (is_loop(at)) return "";
      if (!is_of_library(at)) return at.place.empty() ? at.function : at.place;
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> places_of(const std::vector<std::string>& modules,
                                   const std::vector<std::vector<code_address>>& callers) {
  // never destroyed: a program may ask in its end
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<key, frames>;
  const std::lock_guard lock(mutex);
  std::map<std::string, std::set<std::uint64_t>> unknown;
  for (const auto& list : callers) {
    for (const code_address& caller : list) {
      if (caller.module >= modules.size()) continue;
      const std::string& module = modules[caller.module];
      if (!known.contains({module, caller.offset})) unknown[module].insert(caller.offset);
    }
  }
  for (const auto& [module, offsets] : unknown) ask(module, offsets, known);
  std::vector<std::string> found;
  for (const auto& list : callers) found.push_back(place_in(modules, list, known));
  return found;
}

}  // namespace troupe
