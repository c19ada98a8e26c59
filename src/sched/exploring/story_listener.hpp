// story_listener: makes story events of the trace's events of the calling thread.
// Thread: the simulation's own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "observe/ring.hpp"
#include "sched/exploring/story_event.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched::exploring {

// The name of a method or of a class as the compiler writes it, without its noise.
std::string without_qualifiers(std::string text);

// While it exists, each event of the thread that made it is passed to the function. The execution
// has to record.
class story_listener : private observe::listener {
 public:
  using receiver = std::function<void(const story_event&)>;
  story_listener(const execution& told, receiver receive);
  story_listener(const story_listener&) = delete;
  story_listener& operator=(const story_listener&) = delete;
  ~story_listener();
  // Called where the fault happens, for execution::on_fault.
  void note_fault(const hold& happened);

 private:
  static void hear(listener& self, observe::event kind, const char* text,
                   std::uint64_t id) noexcept;
  static void hear_wait(listener& self, std::uint64_t id, const char* text, const char* whose,
                        const char* file, std::uint32_t line) noexcept;
  void pass(observe::event kind, const char* text, std::uint64_t id);
  void begin(story_event& event) const;
  std::vector<code_address> callers();
  std::uint32_t module_of(const std::string& path);

  const execution& told_;
  const receiver receive_;
  const bool watched_before_;
  listener* const outer_;  // of the same thread: gets each event as well
  std::map<std::string, std::uint32_t> modules_;
  // An execution makes few different calls, each many times.
  std::unordered_map<std::uintptr_t, code_address> known_calls_;
};

}  // namespace troupe::sched::exploring
