// completion: scripts that complete the commands of `troupe` in a shell, made from the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace troupe_tool {

// A script for bash, to be sourced.
std::string bash_completion(const CLI::App& app);
// A function for zsh: the file _troupe in a folder of $fpath.
std::string zsh_completion(const CLI::App& app);

}  // namespace troupe_tool
