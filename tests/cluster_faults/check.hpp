// check: whether histories of several processes have an explanation, register by register.
#pragma once

#include <string>
#include <vector>

namespace troupe::test {

// Prints what it has found. Returns 0 if all registers are linearizable, 1 if one is not, and
// throws if a file cannot be read.
int check_histories(const std::vector<std::string>& paths);

}  // namespace troupe::test
