#include "troupe/actor/cell.hpp"

#include <utility>

#include "actor/counting/last_handler.hpp"
#include "actor/lifetime/ending.hpp"
#include "actor/mailbox/activation.hpp"
#include "actor/mailbox/deliver.hpp"
#include "actor/state/optional_state.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn_state.hpp"
#include "base/invariant.hpp"
#include "memory/stable_pool.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/base/error.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

void add_ref(cell& actor) noexcept {
  // order: relaxed  the caller holds a ref already
  if (actor.refs.add()) actor_system::of(actor).orphan_refs.fetch_add(1, std::memory_order_relaxed);
}

void drop_ref(cell& actor) noexcept {
  if (drop_at_home(actor) || actor.refs.drop_one_of_many()) return;
  // Once the count is zero only the gate keeps the system alive.
  actor_system& system = actor_system::of(actor);
  system.enter_gate();
  const ref_state::dropped how = actor.refs.drop();
  if (how == ref_state::dropped::last) notify_unreferenced(actor);
  system.leave();
  if (how == ref_state::dropped::orphan) system.drop_orphan_ref();
}

std::uint64_t id_of(const cell& actor) noexcept { return memory::slot_space::number_of(&actor); }

// order: relaxed  the thread's own
cell* current_cell() noexcept {
  return static_cast<cell*>(tasks::running_here().actor.load(std::memory_order_relaxed));
}

void refuse_far_base(std::size_t offset) {
  throw usage_error(
      "troupe: ref: the base class lies " + std::to_string(offset) +
      " bytes behind the beginning of the object, and a ref can be of one up to " +
      std::to_string(address::offset_max) +
      ": let the class derive from it first, or keep large members in a std::unique_ptr");
}

bool current_is_reentrant() noexcept { return current_cell()->type->reentrant; }

std::size_t prepare_self_ref(cell* running, const void* object, std::size_t bytes) {
  const std::size_t offset = running == nullptr ? SIZE_MAX : offset_in(*running, object);
  if (offset > address::offset_max || (offset != 0 && offset + bytes > running->type->bytes)) {
    throw usage_error(
        "troupe: self() is for the actor whose handler is running, called with `this`; elsewhere "
        "keep the ref that spawn() returned");
  }
  construction::accept_mail(*running);
  return offset;
}

inside_actor::inside_actor(cell& actor) noexcept
    : before_(current_cell()), context_before_(enter_heap(heap_of(actor))) {
  // order: relaxed  the thread's own
  tasks::running_here().actor.store(&actor, std::memory_order_relaxed);
}
inside_actor::~inside_actor() {
  contexts::leave(context_before_);
  // order: relaxed  the thread's own
  tasks::running_here().actor.store(before_, std::memory_order_relaxed);
}

// At the runtime's end no object is constructed any longer: actors that destructors spawn would
// each need another destructor run, without bound.
construction::construction(const placement& where, const cell_type& type)
    : cell_(&make_cell(where, type)),
      // order: relaxed  the ending thread's own, or a handler's that may see it late
      object_(where.system.closing.load(std::memory_order_relaxed) ? nullptr : cell_->object()) {
  tasks::running_state& state = tasks::running_here();
  // order: relaxed  the thread's own
  inside_before_ = static_cast<cell*>(state.actor.load(std::memory_order_relaxed));
  state.actor.store(cell_, std::memory_order_relaxed);
  building_before_ = std::exchange(turn_here().building, this);
  context_before_ = enter_heap(heap_of(*cell_));
}

void construction::leave() noexcept {
  contexts::leave(context_before_);
  tasks::running_state& state = tasks::running_here();
  // order: relaxed  the thread's own
  state.actor.store(inside_before_, std::memory_order_relaxed);
  turn_here().building = building_before_;
}

cell& construction::finish() {
  leave();
  cell& actor = *std::exchange(cell_, nullptr);
  if (object_ == nullptr) [[unlikely]] {
    actor.flags |= cell::stopped;
    return actor;
  }
  actor.flags |= cell::constructed;
  if (actor_heap* heap = heap_of(actor)) [[unlikely]]
    heap->begin();
  if (activation_ != nullptr) [[unlikely]] {
    start(actor);
  } else {
    start_at_home(actor);
  }
  return actor;
}

void construction::accept_mail(cell& actor) {
  construction* building = turn_here().building;
  if (building == nullptr || building->cell_ != &actor || building->activation_ != nullptr) return;
  activation& activated = make_activation(actor);
  const bool claimed = mailbox(actor.word).claim(activated);
  TROUPE_REQUIRE(claimed, "M4");
  building->activation_ = &activated;
}

// Queues the actor for its first turn, which handles the messages sent during its construction.
void construction::start(cell& actor) {
  actor_system& system = actor_system::of(actor);
  // order: relaxed  set before the last threads ended
  if (system.closing.load(std::memory_order_relaxed)) return turn_type.discard(*activation_);
  system.executor_of(actor).submit(*activation_);
}

void construction::fail() noexcept {
  leave();
  cell& not_begun = *cell_;
  end_object(not_begun, ended(ended::why::failed));
  if (activation_ != nullptr) {
    start(not_begun);
    return drop_ref(not_begun);
  }
  free_cell(not_begun);
}

namespace {

static_assert(cell_type::slots_begin == memory::slot_space::first_slot);

// While the runtime is observed, a word in front of the object keeps the last handler.
constexpr std::size_t extra_of(const actor_system& system, bool has_optional_state) noexcept {
  return (has_optional_state ? sizeof(optional_state) : 0) +
         (system.counts != nullptr ? last_bytes : 0);
}

TROUPE_INLINE cell& make_cell_at(const placement& where, const cell_type& type, std::size_t offset,
                                 std::size_t slot_bytes, bool bounded) {
  void* slot = where.system.slots.allocate(slot_bytes, own_magazines(where.system));
  return *::new (slot)
      cell(type, static_cast<std::uint16_t>(where.executor | (bounded ? cell::bounded : 0)),
           static_cast<std::uint8_t>(offset / 8));
}

TROUPE_NOINLINE cell& make_cell_with_optional_state(const placement& where, const cell_type& type) {
  std::unique_ptr<mail_bound> bound;
  if (where.mailbox_messages != 0) {
    bound = std::make_unique<mail_bound>(where.mailbox_messages,
                                         static_cast<when_full>(where.when_full));
  }
  std::unique_ptr<supervision_state> supervision;
  if (where.on_error != error_policy::resume || where.parent != nullptr) {
    supervision = std::make_unique<supervision_state>();
    supervision->on_error = where.on_error;
    if (where.restart != nullptr) supervision->restart = *where.restart;
  }
  std::unique_ptr<actor_heap> heap;
  if (where.context != nullptr)
    heap = std::make_unique<actor_heap>(*where.context, where.rolls_back);
  const std::size_t extra = extra_of(where.system, true);
  cell& actor = make_cell_at(where, type, type.offset_behind(extra), type.slot_bytes_behind(extra),
                             bound != nullptr);
  actor.flags |= cell::has_optional_state;
  auto& optional = *::new (&actor + 1) optional_state{{where.turn_messages, where.turn_ns},
                                                      {},
                                                      std::move(bound),
                                                      std::move(heap),
                                                      std::move(supervision)};
  if (where.parent != nullptr) {
    add_ref(*where.parent);
    optional.supervision->parent = where.parent;
  }
  if (!where.name.empty()) optional.named = where.system.names.add(id_of(actor), where.name);
  return actor;
}

TROUPE_NOINLINE cell& make_unusual_cell(const placement& where, const cell_type& type,
                                        bool optional) {
  const std::size_t extra = extra_of(where.system, false);
  cell& actor = optional ? make_cell_with_optional_state(where, type)
                         : make_cell_at(where, type, type.offset_behind(extra),
                                        type.slot_bytes_behind(extra), false);
  if (where.system.counts != nullptr) begin_last(actor);
  return actor;
}

}  // namespace

cell& make_adopted(const placement& where, const cell_type& type, void* object) {
  if (where.on_error == error_policy::restart)
    refuse_restart("an object that was given to activate() cannot be constructed anew");
  if (where.context != nullptr) {
    throw option_error(
        "troupe: spawn_options::context: an object that was given to activate() may be taken back, "
        "and its memory would go before it");
  }
  cell& actor = make_cell(where, type);
  // order: relaxed  as in construction's constructor
  if (where.system.closing.load(std::memory_order_relaxed)) {
    actor.flags |= cell::stopped;
  } else {
    actor.flags |= cell::constructed;
    optional_state::of(actor).adopted = object;
  }
  return actor;
}

cell& make_cell(const placement& where, const cell_type& type) {
  const bool optional =
      type.reentrant || type.adopted ||
      (where.has_options && (where.turn_messages != 0 || where.mailbox_messages != 0 ||
                             where.on_error != error_policy::resume || where.parent != nullptr ||
                             where.context != nullptr || !where.name.empty()));
  cell& actor = optional || where.system.counts != nullptr
                    ? make_unusual_cell(where, type, optional)
                    : make_cell_at(where, type, type.offset, type.slot_bytes, false);
  tasks::count(where.system, tasks::counted::spawned);
  if (thread_counts* const counts = where.system.counts_here()) [[unlikely]]
    counts->of_class(type).spawned.add(1);
  if (observe::tracing()) [[unlikely]]
    observe::record(observe::event::spawned, type.name, id_of(actor));
  return actor;
}

}  // namespace troupe::actor
