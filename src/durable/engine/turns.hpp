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

  // Handles the messages of ready actors until none is ready (state/actors.hpp, A4).
  task<> run_ready(engine_ref keeps);

  // Calls of a handler, within its turn, without the mutex.
  void send_from(turn_state& from, request request);
  void ask_from(turn_state& from, request request) noexcept;
  void set_reminder(turn_state& from, std::string_view name, wall_time due, std::string rule,
                    request request);
  due_time wall_now() const { return core_.clock.now(); }

 private:
  // The next step of a task: it handles `message`, or loads the actor's object, or pauses; or ends.
  struct next_step {
    enum class action : std::uint8_t { ends, loads, handles, pauses };
    action does = action::ends;
    activation* actor = nullptr;
    record_ref message;
    std::chrono::milliseconds pause{0};
    std::int64_t chosen_ns = 0;  // when
  };
  // Whose message a task handles after a turn.
  enum class followed_by : std::uint8_t { same_actor, any_ready };

  bool leave_to_task(const next_step& next) noexcept;
  task<> stay_with(engine_ref keeps, next_step next);
  static bool is_at_once(const next_step& next) noexcept;
  next_step handle_at_once(next_step now, followed_by then);
  next_step end_turn(turn_state& done, const tasks::context_ref& span,
                     const std::exception_ptr& failed, outcome given, bytes state,
                     followed_by then);
  bool end_runner() noexcept;
  next_step first_ready();
  next_step next_for(activation& actor);
  next_step choose_after(activation& actor, followed_by then);
  next_step choose_after(activation& actor, followed_by then, std::chrono::milliseconds pause);
  next_step choose_ready(std::int64_t now_ns);
  next_step choose_next(activation& actor, std::int64_t now_ns);
  void begin_choice(activation& actor);
  task<std::chrono::milliseconds> load(activation& actor, std::chrono::milliseconds waited);
  void loaded(activation& actor, std::optional<stored_state> found, std::uint64_t generation);
  void refuse_all(activation& actor, const std::exception_ptr& why, bool for_good);
  bytes encoded(turn_state& turn, const outcome& given) const;
  static object before(const turn_state& turn) noexcept;
  void store_asking(turn_state& from, bool asks_elsewhere);
  void end_asks(turn_state& done);
  next_step finish(turn_state& done, outcome given, bytes state, followed_by then);
  next_step fail(turn_state& done, const std::exception_ptr& why, followed_by then);
  next_step give_up(turn_state& old, followed_by then);
  next_step run_again(turn_state& done, object earlier, followed_by then);
  void send_all(turn_state& done);

  // turn_spans.cpp
  static tasks::context_ref begin_turn_span(const record& message);
  static const tasks::context_ref& context_of(const record& message,
                                              const tasks::context_ref& span) noexcept {
    return span.get() == nullptr ? message.trace : span;
  }
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
