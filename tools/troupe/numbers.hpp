// numbers: the declared numbers of components and of the program itself, as `troupe top` shows
// them.
#pragma once

#include <cstddef>

#include "tables.hpp"

namespace troupe_tool {

// Two answers to `numbers components`; `before` may be null. A line for each number and each
// combination of its labels; those that are 0 are left out.
table numbers_table(const moment& seen, std::size_t width);

}  // namespace troupe_tool
