// compiler: clang-query, which gives the syntax trees of a user's sources.
#pragma once

#include <string>
#include <vector>

namespace troupe_tool {

// What a child process printed, and how it ended.
struct child_result {
  int status = 0;
  std::string output, errors;
};

// Runs a program, found by PATH. Throws failure if it cannot be started.
child_result run_child(const std::vector<std::string>& command);

// The name of clang-query on this machine. Throws failure that names the package if there is none.
std::string find_clang_query();

// The flags that compile FILE: from FOLDER/compile_commands.json. Throws failure if it has none.
struct compile_flags {
  std::string folder;  // where they hold; empty: the current one
  std::vector<std::string> flags;
};
compile_flags flags_of_database(const std::string& folder, const std::string& file);

// Those of the headers beside this program, or else of pkg-config. Throws failure if there are
// none.
std::vector<std::string> flags_of_installation();

// The dump of all coroutines of the file, and of headers that are neither the system's nor
// troupe's. Throws failure if the file does not compile.
std::string dump_coroutines(const std::string& clang_query, const std::string& file,
                            const compile_flags& with);

}  // namespace troupe_tool
