// turns: each turn handles one message of an actor, and puts its effects into the open batch.
//
// Invariants
//   E1  A turn's effects are put into the open batch as a whole, under the mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/messages/intake.hpp"
#include "durable/messages/mailboxes.hpp"
#include "durable/messages/outgoing.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::durable::parts {

class turns {
 public:
  turns(engine_core& core, forgetting& forgets, mailboxes& mail, intake& intake,
        outgoing& outgoing) noexcept
      : core_(core), forgetting_(forgets), mailboxes_(mail), intake_(intake), outgoing_(outgoing) {}
  turns(const turns&) = delete;
  turns& operator=(const turns&) = delete;

  // The task of mailboxes::enqueue().
  task<> handle_all(engine_ref keeps, activation& actor);

  // Calls of a handler, within its turn, without the mutex.
  void send_from(turn_state& from, request request);
  void ask_from(turn_state& from, request request) noexcept;
  void set_reminder(turn_state& from, std::string_view name, wall_time due, std::string rule,
                    request request);
  due_time wall_now() const { return core_.clock.now(); }

 private:
  // The next step of an actor's task: it handles `message`, or loads the object, or ends.
  struct next_step {
    enum class action : std::uint8_t { ends, loads, handles };
    action does = action::ends;
    record_ref message;
  };
  next_step next_for(activation& actor);
  next_step choose_next(activation& actor);  // with the mutex held
  task<std::chrono::milliseconds> load(activation& actor, std::chrono::milliseconds waited);
  void loaded(activation& actor, std::optional<stored_state> found, std::uint64_t generation);
  void refuse_all(activation& actor, const std::exception_ptr& why, bool for_good);
  bytes encoded(turn_state& turn, const outcome& given) const;
  static object before(const turn_state& turn) noexcept;
  void store_asking(turn_state& from, bool asks_elsewhere);
  void end_asks(turn_state& done);
  std::chrono::milliseconds finish(turn_state& done, outcome given, bytes state,
                                   std::optional<next_step>& next);
  std::chrono::milliseconds fail(turn_state& done, const std::exception_ptr& why);
  void give_up(turn_state& old);
  std::chrono::milliseconds run_again(turn_state& done, object earlier);
  void send_all(turn_state& done);

  // turn_spans.cpp
  static tasks::context_ref begin_turn_span(const record& message);
  static task<outcome> in_trace(task<outcome> handler, const tasks::context_ref& within);

  engine_core& core_;
  forgetting& forgetting_;
  mailboxes& mailboxes_;
  intake& intake_;
  outgoing& outgoing_;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
  numbers& numbers_ = core_.numbers;
};

}  // namespace troupe::durable::parts
