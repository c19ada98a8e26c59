// story: the causal past of a failure, in words: which handler ran in which turn, who had sent the
// message, and which turns were held.
//
// It is told of one execution on the calling thread, from the events that a trace has. A handler
// depends on the sender of its message, and on the handlers of its actor before it; what neither
// leads to the failure is left out.
// Thread: the simulation's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observe/ring.hpp"
#include "sched/exploring/schedule.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe {

class story : private observe::listener {
 public:
  explicit story(const sched::exploring::execution& execution);
  story(const story&) = delete;
  story& operator=(const story&) = delete;
  ~story();

  // The handler that runs is the one that fails; otherwise it is the last one.
  void mark() noexcept;
  // After the execution, or in its end.
  std::string text() const;

 private:
  static constexpr std::size_t none = SIZE_MAX;
  struct step {
    const char* method;
    std::uint64_t actor;
    std::uint64_t turn;
    std::size_t sender;   // the step that sent the message
    std::size_t earlier;  // the step of the same actor before it
  };
  static void hear(listener& self, observe::event kind, const char* what,
                   std::uint64_t id) noexcept;
  void note(observe::event kind, const char* what, std::uint64_t id);
  void begin_step(const char* method, std::uint64_t actor);
  std::vector<bool> past() const;
  std::string line_of(const step& step) const;
  std::string sender_text(std::size_t sender) const;
  std::string waiting() const;
  std::string actor_text(std::uint64_t actor) const;
  bool was_held(std::uint64_t turn) const;

  const sched::exploring::execution& execution_;
  const bool watched_before_;
  std::vector<step> steps_;
  std::size_t running_ = none, failing_ = none;
  std::map<std::uint64_t, const char*> classes_;
  std::map<std::uint64_t, std::size_t> last_of_actor_;
  // the senders of the messages that have not been handled, oldest first
  std::map<std::pair<std::uint64_t, std::string>, std::deque<std::size_t>> sent_;
};

}  // namespace troupe
