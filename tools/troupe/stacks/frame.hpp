// frame: a function that a thread is in.
#pragma once

#include <string>
#include <vector>

namespace troupe_tool {

struct frame {
  std::string function;  // an address, if nothing is known of it
  std::string file{};    // without its folders; empty if it is unknown
  int line = 0;
  // "compute(int) at main.cpp:7"
  std::string text() const;
};

// The name of a symbol as in the source. Coroutines have the name of their function.
std::string demangled(const char* symbol);

// Without the functions of the library and of the C++ library around a handler; all of them if
// there are no others. The innermost function is the first.
std::vector<frame> without_library(std::vector<frame> all);

}  // namespace troupe_tool
