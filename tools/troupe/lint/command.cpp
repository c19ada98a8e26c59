#include "lint/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "lint/compiler.hpp"
#include "lint/rules.hpp"
#include "trust/failure.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

struct file_result {
  std::vector<lint_finding> findings;
  std::string problem;  // why it could not be looked at; empty: it was
};

file_result lint_file(const lint_choices& chosen, const std::string& clang_query,
                      const std::string& file) {
  file_result result;
  try {
    if (!std::filesystem::is_regular_file(file)) throw failure(fmt::format("{} is no file", file));
    compile_flags with;
    if (!chosen.build.empty()) {
      with = flags_of_database(chosen.build, file);
    } else if (!chosen.has_flags) {
      with.flags = flags_of_installation();
    }
    with.flags.insert(with.flags.end(), chosen.flags.begin(), chosen.flags.end());
    const std::string dump = dump_coroutines(clang_query, file, with);
    result.findings = find_miscompiled_forms(read_syntax_tree(dump));
  } catch (const std::exception& failed) {
    result.problem = failed.what();
  }
  return result;
}

// As many at a time as there are processors: a file takes as long as clang takes to parse it.
std::vector<file_result> lint_files(const lint_choices& chosen, const std::string& clang_query) {
  std::vector<file_result> results(chosen.files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (;;) {
      // order: relaxed  a ticket; the results are published by the threads' ends
      const std::size_t file = next.fetch_add(1, std::memory_order_relaxed);
      if (file >= results.size()) return;
      results[file] = lint_file(chosen, clang_query, chosen.files[file]);
    }
  };
  std::vector<std::jthread> threads;
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min(processors, results.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return results;
}

std::string shown_file(const std::string& file) {
  std::error_code ignored;
  const std::string near = std::filesystem::relative(file, ignored).string();
  return ignored || near.empty() || near.starts_with("..") ? file : near;
}

}  // namespace

int lint(const lint_choices& chosen) {
  std::string clang_query;
  try {
    clang_query = find_clang_query();
  } catch (const failure& missing) {
    put(fmt::format("troupe lint: {}\n", missing.what()), stderr);
    return 2;
  }
  bool looked = true;
  std::set<lint_finding> findings;
  for (const file_result& result : lint_files(chosen, clang_query)) {
    findings.insert(result.findings.begin(), result.findings.end());
    if (result.problem.empty()) continue;
    looked = false;
    put(fmt::format("troupe lint: {}\n", result.problem), stderr);
  }
  for (const lint_finding& found : findings) {
    print_line(fmt::format("{}:{}:{}: {}: {}", shown_file(found.file), found.line, found.column,
                           found.wrong, found.instead));
  }
  if (!looked) return 2;
  return findings.empty() ? 0 : 1;
}

}  // namespace troupe_tool
