// The flight recorder's part of turns that is off the fast path: names of handlers, and lines.
#include "actor/state/awaited.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/turn_records.hpp"
#include "task/running/running.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::actor {
namespace {

// Called by other threads, and in signal handlers.
observe::running_now look_at_thread(const void* thread) noexcept {
  const auto& state = *static_cast<const tasks::running_state*>(thread);
  // order: relaxed (all)  a snapshot
  const auto* const actor = static_cast<const cell*>(state.actor.load(std::memory_order_relaxed));
  const message::handler method = state.method.load(std::memory_order_relaxed);
  const bool inside = actor != nullptr || state.in_procedure.load(std::memory_order_relaxed);
  if (!inside || method == nullptr) return {};
  return {actor == nullptr ? 0 : id_of(*actor), method(nullptr, nullptr, message_act::describe)};
}

std::uint16_t learn_line(observe::flight_recorder& recorder, tasks::source_line at,
                         std::uint64_t key) noexcept {
  const std::source_location place = tasks::location_of(at);
  if (is_of_library(place)) return recorder.learn_none(key);
  return recorder.learn(key, {observe::event::suspended, at, place.file_name(), place.line()});
}

}  // namespace

void begin_recording(actor_system& system, std::size_t bytes) noexcept {
  system.turns = system.counts == nullptr ? &recorded_turn_type : &recorded_counted_turn_type;
  // order: relaxed  no turn has begun yet
  system.slow_path_flags.fetch_or(tasks::runtime_state::records_turns, std::memory_order_relaxed);
  observe::flight_recorder::look_by(
      &look_at_thread, []() noexcept -> const void* { return &tasks::running_here(); });
  observe::flight_recorder::begin(bytes);
}

TROUPE_NOINLINE std::uint16_t learn_handler(observe::flight_recorder& recorder,
                                            message::handler method) noexcept {
  if (method == nullptr) return 0;
  const void* const at = reinterpret_cast<const void*>(method);
  return recorder.learn(
      reinterpret_cast<std::uintptr_t>(at),
      {observe::event::handle_end, at, method(nullptr, nullptr, message_act::describe), 0});
}

// Walks from a coroutine of the library to the coroutine that awaits it, until it finds a coroutine
// of the user. Whether a line belongs to the library is looked up once per line.
TROUPE_NOINLINE void record_line(observe::flight_recorder& recorder, const activation& active,
                                 std::uint32_t actor) noexcept {
  if (active.suspended == nullptr || active.suspended->awaited == nullptr) return;
  for (const tasks::coroutine* waiting = active.suspended->awaited->waiter; waiting != nullptr;) {
    if (waiting->awaits_at != nullptr) {
      const std::uint64_t key =
          observe::subjects::key_of(observe::event::suspended, waiting->awaits_at);
      const auto& known = recorder.known_for(key);
      const std::uint16_t code =
          known.key == key ? known.code : learn_line(recorder, waiting->awaits_at, key);
      if (code != 0) return recorder.put(actor, code, 0);
    }
    const tasks::coroutine* const above = waiting->waiting_parent();
    waiting = above != nullptr ? above : tasks::side_call::awaits(*waiting->call);
  }
}

}  // namespace troupe::actor
