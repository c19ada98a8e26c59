#include "runtime/debugger_table.hpp"

#include <cstddef>
#include <iterator>
#include <mutex>

#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/state/optional_state.hpp"
#include "actor/system/actor_system.hpp"
#include "io/reactor/slot.hpp"
#include "memory/slot_space.hpp"
#include "observe/flight/recorder.hpp"
#include "observe/kinds.hpp"
#include "task/running/running.hpp"
#include "task/timers/timers.hpp"
#include "task/timers/wheel.hpp"
#include "task/turn_of_others.hpp"
#include "troupe/actor/conditional_message.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/io/operations/suspension.hpp"
#include "troupe/sync/mutex.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/groups/parallel_child.hpp"
#include "troupe/task/groups/scope_group.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"

// Many of the types have bases with members. For them offsetof is conditionally supported, and both
// compilers support it, since no base is virtual.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace troupe {
namespace {

template <class T>
constexpr std::uint32_t as_u32(T value) {
  return static_cast<std::uint32_t>(value);
}

}  // namespace

#define TROUPE_OFFSET(type, member) \
  { #type "." #member, as_u32(offsetof(type, member)) }

namespace observe {
struct debugger_view {
  using turn_ring = flight_recorder::ring_of_turns;
  static constexpr debugger_entry entries[] = {
      TROUPE_OFFSET(flight_recorder, ring_),
      TROUPE_OFFSET(flight_recorder, rate_),
      TROUPE_OFFSET(flight_recorder, high_),
      TROUPE_OFFSET(flight_recorder, next_),
      TROUPE_OFFSET(flight_recorder, thread_),
      TROUPE_OFFSET(flight_recorder, name_),
      TROUPE_OFFSET(turn_ring, numbers_),
      TROUPE_OFFSET(turn_ring, codes_),
      TROUPE_OFFSET(turn_ring, mask_),
      TROUPE_OFFSET(turn_ring, written_),
      {"turn.shift", subjects::shift},
      {"turn.time", subjects::time},
      {"turn.time_high", subjects::time_high},
      {"turn.other", subjects::other},
      {"turn.tick_shift", flight_recorder::tick_shift},
      {"turn.number_bits", flight_recorder::number_bits},
      {"turn.time_bits", flight_recorder::time_bits},
      {"turn.messages_max", flight_recorder::messages_max},
      {"turn.line", as_u32(event::suspended)},
      {"turn.handler", as_u32(event::handle_end)},
      {"subject.bytes", as_u32(sizeof(subject))},
      {"subject.count", as_u32(subjects::size)},
      TROUPE_OFFSET(subject, at),
      TROUPE_OFFSET(subject, name),
      TROUPE_OFFSET(subject, line),
      TROUPE_OFFSET(subject, kind),
      TROUPE_OFFSET(subject, ready),
      {"event.bytes", as_u32(sizeof(kind_of_event))},
      {"event.name", as_u32(offsetof(kind_of_event, name))},
      {"event.id", as_u32(offsetof(kind_of_event, id))},
      {"event.when", as_u32(offsetof(kind_of_event, when))},
  };
};
}  // namespace observe

namespace memory {
struct debugger_view {
  static constexpr debugger_entry entries[] = {
      {"slab.bytes", as_u32(slab_bytes)},
      {"slab.first_slot", as_u32(slot_space::first_slot)},
      {"slab.alone", as_u32(slot_space::alone)},
      {"slab.slots_max", as_u32(slot_space::slots_max)},
      TROUPE_OFFSET(slab, owner),
      TROUPE_OFFSET(slab, slot_bytes),
      TROUPE_OFFSET(slab, size_class),
      TROUPE_OFFSET(slab, carved),
      TROUPE_OFFSET(slab, link),
      TROUPE_OFFSET(slab, number),
      TROUPE_OFFSET(slot_space, slabs_),
      TROUPE_OFFSET(slot_space, alone_),
  };
};
}  // namespace memory

namespace tasks {
struct debugger_view {
  static constexpr debugger_entry entries[] = {
      {"list.first", as_u32(offsetof(decltype(group::branches_), first_))},
      {"link.next", as_u32(offsetof(base::list_link<async_call>, next))},
      TROUPE_OFFSET(runtime_state, host),
      TROUPE_OFFSET(runtime_state, closing),
      TROUPE_OFFSET(call_host, clock),
      TROUPE_OFFSET(running_state, actor),
      TROUPE_OFFSET(running_state, runtime),
      TROUPE_OFFSET(running_state, method),
      TROUPE_OFFSET(running_state, in_procedure),
      TROUPE_OFFSET(running_state, name),
      TROUPE_OFFSET(running_state, running_call),
      TROUPE_OFFSET(running_state, worker),
      TROUPE_OFFSET(running_state, link),
      {"coroutine.frame", as_u32(sizeof(void*) * 2)},  // from the frame to the promise
      {"coroutine.bytes", as_u32(sizeof(coroutine))},
      {"coroutine.tags", as_u32(coroutine::tags)},
      {"coroutine.in", as_u32(offsetof(coroutine, call))},
      TROUPE_OFFSET(coroutine, awaits_at),
      TROUPE_OFFSET(coroutine, parent),
      {"async_call.bytes", as_u32(sizeof(async_call))},
      TROUPE_OFFSET(async_call, call),
      TROUPE_OFFSET(async_call, actor),
      TROUPE_OFFSET(async_call, at),
      TROUPE_OFFSET(async_call, awaited),
      TROUPE_OFFSET(async_call, answers),
      TROUPE_OFFSET(async_call, link),
      TROUPE_OFFSET(async_call, done),
      TROUPE_OFFSET(async_call, cancelled),
      TROUPE_OFFSET(async_call, busy),
      {"suspension.act", as_u32(offsetof(suspension, act))},
      {"suspension.who", as_u32(offsetof(suspension, waiter))},
      TROUPE_OFFSET(suspension, ended),
      TROUPE_OFFSET(suspension, limited),
      TROUPE_OFFSET(suspension, for_lock),
      {"future_wait.of_", as_u32(offsetof(future_wait, state_))},
      TROUPE_OFFSET(group, kind_),
      TROUPE_OFFSET(group, branches_),
      {"group.kind_name", as_u32(offsetof(group::kind, name))},
      {"branch.of", as_u32(offsetof(branch, owner))},
      TROUPE_OFFSET(branch, root),
      TROUPE_OFFSET(side_wait, first_),
      TROUPE_OFFSET(side_call, waiter_),
      TROUPE_OFFSET(side_call, next_waited_),
      {"shared_state.done", as_u32(shared_state::done)},
      {"shared_state.untaken", as_u32(shared_state::untaken)},
      TROUPE_OFFSET(shared_state, word),
      TROUPE_OFFSET(shared_state, asked),
      {"ask_link.answer", as_u32(ask_link::subject::answer)},
      {"ask_link.object", as_u32(ask_link::subject::object)},
      {"ask_link.permit", as_u32(ask_link::subject::permit)},
      {"ask_link.job", as_u32(ask_link::subject::job)},
      TROUPE_OFFSET(ask_link, asker),
      TROUPE_OFFSET(ask_link, asked),
      TROUPE_OFFSET(ask_link, method),
      {"ask_link.name", as_u32(offsetof(ask_link, name_or_context))},
      TROUPE_OFFSET(ask_link, parent),
      TROUPE_OFFSET(ask_link, forwarded),
      TROUPE_OFFSET(ask_link, at),
      TROUPE_OFFSET(ask_link, kind),
      TROUPE_OFFSET(timers, wheels_),
      TROUPE_OFFSET(timers, number_),
      TROUPE_OFFSET(guarded_wheel, wheel_),
      {"guarded_wheel.size", as_u32(sizeof(guarded_wheel))},
      {"wheel.slot_count", as_u32(wheel::levels* wheel::slots)},
      TROUPE_OFFSET(wheel, slots_),
      TROUPE_OFFSET(wheel, due_),
      TROUPE_OFFSET(timer, link),
      TROUPE_OFFSET(timer, expired),
      {"sleep.timer", as_u32(offsetof(sleep_suspension, expired) - offsetof(timer, expired))},
  };

  static constexpr debugger_function functions[] = {
      {"future", &future_wait::act_on}, {"tasks", &group::act_on},
      {"stream", &side_wait::act_on},   {"sleep", &sleep_suspension::act_on},
      {"yield", &yield_wait::act_on},   {"parallel child", &parallel_child_end::act_on},
      {"child", &scope_wait::act_on},   {"turn of others", &turn_of_others::act_on},
  };
};
}  // namespace tasks

namespace actor {
struct debugger_view {
  using guards = cell_table<conditional_message>;
  static constexpr debugger_entry entries[] = {
      TROUPE_OFFSET(actor_system, debugger_link),
      TROUPE_OFFSET(actor_system, slots),
      TROUPE_OFFSET(actor_system, asleep),
      TROUPE_OFFSET(actor_system, sleepers),
      TROUPE_OFFSET(cell_type, bytes),
      TROUPE_OFFSET(cell_type, name),
      TROUPE_OFFSET(cell_type, reentrant),
      {"cell.bytes", as_u32(sizeof(cell))},
      TROUPE_OFFSET(cell, word),
      TROUPE_OFFSET(cell, type),
      TROUPE_OFFSET(cell, refs),
      TROUPE_OFFSET(cell, executor),
      TROUPE_OFFSET(cell, offset),
      TROUPE_OFFSET(cell, flags),
      {"cell.constructed", cell::constructed},
      {"cell.stopped", cell::stopped},
      {"cell.guards", cell::guards},
      {"cell.has_extras", cell::has_optional_state},
      {"cell.bounded", cell::bounded},
      {"cell_extras.calls", as_u32(offsetof(optional_state, async_calls))},
      {"cell_extras.adopted", as_u32(offsetof(optional_state, adopted))},
      {"cell_extras.supervision", as_u32(offsetof(optional_state, supervision))},
      {"supervision.parent", as_u32(offsetof(supervision_state, parent))},
      {"mailbox.active", as_u32(mailbox::active_tag)},
      {"mailbox.closed", as_u32(mailbox::closed)},
      {"mailbox.parked", as_u32(mailbox::parked_tag)},
      {"mailbox.urgent", as_u32(mailbox::urgent_tag)},
      {"mailbox.tags", as_u32(mailbox::tags)},
      {"activation.bytes", as_u32(sizeof(activation))},
      TROUPE_OFFSET(activation, actor),
      TROUPE_OFFSET(activation, oldest),
      TROUPE_OFFSET(activation, suspended),
      {"message.next", as_u32(offsetof(message, next))},
      {"message.act", as_u32(offsetof(message, act))},
      TROUPE_OFFSET(spawned_task, root),
      {"guards.buckets", as_u32(offsetof(actor_system, guards) + offsetof(guard_table, table_) +
                                offsetof(guards, buckets_))},
      {"guards.bucket_count", as_u32(guards::buckets)},
      {"guards.bucket_bytes", as_u32(sizeof(guards::bucket))},
      {"guards.first", as_u32(offsetof(guards::bucket, first))},
      {"guards.of", as_u32(offsetof(conditional_message, actor))},
      {"guards.next", as_u32(offsetof(conditional_message, next_waiting))},
      {"guards.next_actor", as_u32(offsetof(conditional_message, next_in_table))},
  };
};
}  // namespace actor

namespace sync {
struct debugger_view {
  using lock_wait = awaiting<locking<mutex, false>>;
  using exclusive_wait = awaiting<locking<shared_mutex, false>>;
  using shared_wait = awaiting<locking<shared_mutex, true>>;
  static constexpr debugger_entry entries[] = {
      // All locks have this in the same way.
      {"lock_wait.self", as_u32(offsetof(lock_wait::wait, self))},
      {"lock_wait.lock", as_u32(offsetof(lock_wait, lock))},
      {"mutex.holder", as_u32(offsetof(mutex, holder_))},
      {"shared_mutex.holder", as_u32(offsetof(shared_mutex, holder_))},
      {"holder.by", as_u32(offsetof(holder_of_lock, by_))},
      {"holder.method", as_u32(offsetof(holder_of_lock, method_))},
      {"holder.at", as_u32(offsetof(holder_of_lock, at_))},
  };
  static constexpr debugger_function functions[] = {
      {"lock", &lock_wait::act_on},
      {"exclusive lock", &exclusive_wait::act_on},
      {"shared lock", &shared_wait::act_on},
  };
};
}  // namespace sync

namespace io {
struct debugger_view {
#define TROUPE_ACTION(name) \
  { "action." #name, as_u32(action::name) }
  static constexpr debugger_entry entries[] = {
      TROUPE_OFFSET(operation_suspension, opcode),
      TROUPE_OFFSET(operation_suspension, at),
      TROUPE_OFFSET(slot, fd),
      TROUPE_ACTION(read),
      TROUPE_ACTION(write),
      TROUPE_ACTION(accept),
      TROUPE_ACTION(connect),
      TROUPE_ACTION(readable),
      TROUPE_ACTION(writable),
      TROUPE_ACTION(receive),
      TROUPE_ACTION(send),
      TROUPE_ACTION(send_file),
      TROUPE_ACTION(ended),
      TROUPE_ACTION(open),
      TROUPE_ACTION(read_at),
      TROUPE_ACTION(write_at),
      TROUPE_ACTION(sync),
      TROUPE_ACTION(close),
      TROUPE_ACTION(status),
  };
#undef TROUPE_ACTION
  static constexpr debugger_function functions[] = {
      {"I/O", &operation_suspension::act_on},
  };
};
}  // namespace io

namespace {

// The part of one layer.
struct part {
  const debugger_entry* entries;
  std::uint64_t entry_count;
  const debugger_function* functions;
  std::uint64_t function_count;
};
template <class View>
constexpr part part_of() {
  if constexpr (requires { View::functions; })
    return {View::entries, std::size(View::entries), View::functions, std::size(View::functions)};
  return {View::entries, std::size(View::entries), nullptr, 0};
}

// The object that the script reads first. Increase `version` when the form of this object changes,
// not when entries come or go: the script names the entry that it misses.
struct debugger_table {
  char magic[16] = "troupe debugger";
  std::uint64_t version = 1, entry_bytes = sizeof(debugger_entry);
  const void* threads = nullptr;
  base::intrusive_list<actor::actor_system, &actor::actor_system::debugger_link> systems;
  const actor::cell_type* spawned = &actor::spawned_type;
  std::uint64_t part_count = 6;
  part parts[6] = {part_of<memory::debugger_view>(), part_of<tasks::debugger_view>(),
                   part_of<actor::debugger_view>(),  part_of<sync::debugger_view>(),
                   part_of<io::debugger_view>(),     part_of<observe::debugger_view>()};
  // Behind the parts, where an older script does not look: the flight recorders, and the meanings
  // of the codes of their records.
  const void* recorders = nullptr;
  const void* subjects = nullptr;
  const void* events = nullptr;
};

std::mutex systems_mutex;

}  // namespace

extern "C" {
[[gnu::used, gnu::section(".troupe_debugger")]] constinit debugger_table troupe_debugger;
}

void show_debugger(actor::actor_system& begun) noexcept {
  std::lock_guard lock(systems_mutex);
  troupe_debugger.threads = tasks::list_of_threads();
  troupe_debugger.recorders = observe::list_of_recorders();
  troupe_debugger.subjects = observe::subjects::all();
  troupe_debugger.events = observe::kinds.data();
  troupe_debugger.systems.push_back(begun);
}

void hide_from_debugger(actor::actor_system& ended) noexcept {
  std::lock_guard lock(systems_mutex);
  troupe_debugger.systems.remove(ended);
}

}  // namespace troupe
