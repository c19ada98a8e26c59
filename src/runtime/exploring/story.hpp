// story: the causal past of a failure: which handler ran in which turn, which source line had sent
// its message, which turns were held, and how these run without their holds.
//
// A handler depends on the sender of its message, and on the handlers of its actor before it;
// other handlers are left out. All faults are listed. The text and the diagrams are made from the
// same told_story. Thread: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sched/exploring/story_event.hpp"

namespace troupe {

// A message of a story: the call of a handler, or its next part.
struct told_message {
  static constexpr std::size_t none = SIZE_MAX;
  std::string method;
  std::size_t receiver = none;   // in told_story::actors
  std::size_t sender = none;     // in told_story::actors; none: the program
  std::size_t cause = none;      // in told_story::messages: the handler that sent it
  std::uint64_t turn = 0;        // 0: it was not handled
  std::uint64_t cause_turn = 0;  // 0: sent outside of a turn
  std::string place{};           // FILE:LINE of the call that sent it, if it is known
  bool continues = false;        // the next part of a handler
  std::string by{};              // a timer or I/O that ended the wait
  bool is_held = false;
  std::string otherwise{};  // where a held one runs without the holds
  std::string waits_for{};  // of a handler that waits at the end
  bool fails = false;       // the failure is in it
};

// A fault of the network, of a file or of a storage.
struct told_fault {
  std::string text;
  std::uint64_t turn = 0;  // in which, or after which, it happened; 0: before the first one
  std::string handler{};   // that ran: "Client::ask of Client #3"
  std::string place{};     // FILE:LINE of the call that failed, if it is known
};
// "in turn 7, in Client::ask of Client #3 at client.cpp:12: a connection was cut at its send 1"
std::string text_of(const told_fault& fault);

struct told_story {
  std::vector<std::string> actors;     // "Stock #3", in the order in which they take part
  std::vector<told_message> messages;  // the handled ones in the order of their turns
  std::size_t left_out = 0;            // earlier handlers that led to these
  std::vector<told_fault> faults{};
};

// Collects the events of one execution.
class story {
 public:
  void note(const sched::exploring::story_event& event);
  // Reads the events of another process's file (seen_file.hpp).
  void read(std::istream& lines);
  // The failure names the handlers that wait, if they are the failure. `without` is the story of
  // the same schedule without holds.
  told_story tell(const std::string& failure, const std::vector<sched::exploring::hold>& holds,
                  const story& without) const;

 private:
  using code_address = sched::exploring::code_address;
  using turn_id = sched::exploring::turn_id;
  static constexpr std::size_t none = SIZE_MAX;
  struct sent {
    std::size_t sender;  // the step that sent it
    std::vector<code_address> callers;
    std::string asked_at{};  // the line in which the sender awaits the answer
  };
  struct step {
    std::string method;
    std::uint64_t actor;
    std::uint64_t turn;
    turn_id id;
    sent by{none, {}};
    std::size_t earlier = none;  // the step of the same actor before it
    bool continues = false;
    std::string outside{};  // that ended the wait
    std::string awaits{};
    bool wait_is_over = false;
  };
  struct failed_call {
    std::string text;
    std::uint64_t turn;
    std::size_t running;  // the step, or none
    std::vector<code_address> callers;
  };
  friend class story_teller;
  void begin(const sched::exploring::story_event& event);
  void wait(const sched::exploring::story_event& event);
  // The handler that ended the wait of this one.
  void find_waker(step& next, std::uint64_t ready_after) const;
  std::vector<std::size_t> ends(const std::string& failure) const;
  std::vector<std::size_t> waits_of(const std::string& failure) const;
  std::vector<bool> past(const std::vector<std::size_t>& ends) const;
  std::string actor_text(std::uint64_t actor) const;

  std::vector<std::string> modules_;
  std::vector<step> steps_;
  std::vector<failed_call> faults_;
  std::size_t running_ = none, failing_ = none;
  sent* last_sent_ = nullptr;  // by the handler that runs
  std::map<std::uint64_t, std::string> classes_;
  std::map<std::uint64_t, std::size_t> last_of_actor_;
  std::map<std::size_t, std::string> outside_;  // by the number of the step that comes next
  // the messages that have not been handled, oldest first
  std::map<std::pair<std::uint64_t, std::string>, std::deque<sent>> sent_;
};

std::string text_of(const told_story& told);

}  // namespace troupe
