// turn_records: turns in the flight recorder of their thread (observe/flight/recorder.hpp).
#pragma once

#include <cstdint>

#include "actor/mailbox/activation.hpp"
#include "memory/slot_space.hpp"
#include "observe/flight/recorder.hpp"
#include "sched/runnable.hpp"
#include "task/running/running.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

class actor_system;

// From now on this runtime's turns are recorded; called by its constructor. `bytes`: of a thread's
// ring.
void begin_recording(actor_system& system, std::size_t bytes) noexcept;

std::uint16_t learn_handler(observe::flight_recorder& recorder, message::handler method) noexcept;
// The turn has ended with a wait: records the line of the co_await, for the suspended call of the
// actor, which is still this turn's.
void record_line(observe::flight_recorder& recorder, const activation& active,
                 std::uint32_t actor) noexcept;

// Puts the turn that has ended; `handled` is at most messages_max. Returns the actor's number.
TROUPE_INLINE std::uint32_t put_turn(observe::flight_recorder& recorder, const activation& active,
                                     message::handler method, unsigned handled) noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(method);
  const auto& known = recorder.known_for(key);
  std::uint16_t code = known.code;
  if (known.key != key) [[unlikely]]
    code = learn_handler(recorder, method);
  const std::uint32_t actor = memory::slot_space::low_number_of(active.actor);
  recorder.put(actor, code, handled);
  return actor;
}

// The actor's turn has ended. `before`: the thread's count of messages before it.
inline void record_turn(const tasks::running_state& state, const activation& active,
                        std::int64_t before, sched::after_turn after) noexcept {
  observe::flight_recorder* const recorder = observe::flight_recorder::here();
  if (recorder == nullptr) [[unlikely]]
    return;
  const std::int64_t now = state.own[tasks::counted::messages];
  // A count that has become less began anew, with another runtime.
  const auto handled = static_cast<std::uint64_t>(now < before ? now : now - before);
  constexpr std::uint64_t most = observe::flight_recorder::messages_max;
  // order: relaxed  the thread's own
  const message::handler method = state.method.load(std::memory_order_relaxed);
  const std::uint32_t actor =
      put_turn(*recorder, active, method, static_cast<unsigned>(handled < most ? handled : most));
  if (after == sched::after_turn::waits) [[unlikely]]
    record_line(*recorder, active, actor);
}

// The same for a turn that handled a few ordinary messages, and is out of mail.
TROUPE_INLINE void record_quick_turn(const tasks::running_state& state, const activation& active,
                                     unsigned handled) noexcept {
  observe::flight_recorder* const recorder = observe::flight_recorder::here();
  if (recorder == nullptr) [[unlikely]]
    return;
  // order: relaxed  the thread's own
  const message::handler method = state.method.load(std::memory_order_relaxed);
  static_cast<void>(put_turn(*recorder, active, handled == 0 ? nullptr : method, handled));
}

}  // namespace troupe::actor
