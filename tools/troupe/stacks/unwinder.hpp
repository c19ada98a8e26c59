// unwinder: finds the functions of a stack by the debug information of the program's files, with
// libdw. The program does not wait for it.
//
// The files belong to the program's user, and libdw reads them in this process: root should not ask
// the programs of users whom root does not trust, as with a debugger.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "stacks/frame.hpp"
#include "stacks/thread_stack.hpp"

namespace troupe_tool {

class unwinder {
 public:
  // Throws failure if the tool was built without libdw, or the program's files cannot be read.
  explicit unwinder(int pid);
  unwinder(const unwinder&) = delete;
  unwinder& operator=(const unwinder&) = delete;
  ~unwinder();

  // Where the thread is, and from where each function was called; the innermost first, at most 256.
  // Cheap, unlike the search for the functions.
  std::vector<std::uint64_t> addresses_of(const thread_stack& sampled);
  // The functions at these addresses, with those that the compiler has inlined.
  std::vector<frame> frames_of(const std::vector<std::uint64_t>& addresses);
  // As find_methods (method_places.hpp). Reads all of the debug information.
  std::unordered_map<std::string, std::string> places_of(const std::set<std::string>& methods);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe_tool
