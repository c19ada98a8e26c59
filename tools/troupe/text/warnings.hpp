// warnings: what a program warns of, as tables.
#pragma once

#include <cstddef>
#include <string>

#include "program.hpp"
#include "tables.hpp"

namespace troupe_tool {

// A line for each warning of a summary, the newest first.
table warning_table(const json& summary, std::size_t width);
// All of one warning, in as many lines as it takes.
table warning_text(const json& summary, std::size_t runtime, const std::string& warning,
                   std::size_t width);
// Trouble if a warning of that runtime holds now.
severity worst_warning_of(const json& summary, std::size_t runtime);

}  // namespace troupe_tool
