// arguments: what is known of a command's options and arguments, for the texts that are made of it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace troupe_tool {

// What can stand in the place of an argument, or of an option's value.
enum class completion { nothing, values, processes, commands, files };
completion completion_of(const CLI::Option& option);

// The values between which an option lets the user choose; none if it takes others.
std::vector<std::string> values_of(const CLI::Option& option);

std::vector<const CLI::App*> commands_of(const CLI::App& app);
// In the order in which they are given; without those that are none.
std::vector<const CLI::Option*> arguments_of(const CLI::App& command);
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// "-o", "--output".
std::vector<std::string> names_of(const CLI::Option& option);
// "PID", or "OUTPUT" for the value of --output; empty for a flag.
std::string placeholder_of(const CLI::Option& option);
bool takes_many(const CLI::Option& option);

// "troupe store ls".
std::string words_of(const CLI::App& command);

}  // namespace troupe_tool
