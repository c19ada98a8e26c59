// How a coroutine waits for an operation. suspend() binds the descriptor to the runtime's reactor
// and starts the operation there. If that is not done at once, the coroutine suspends. The reactor
// ends the wait in one of two ways:
// - it has completed the operation: on_completed();
// - the operation is due: it can be done now, and the coroutine's own turn does it (carry_out()).
//   A leased read, once many leased buffers are in use, therefore takes one no sooner than its
//   coroutine runs.
// A timeout, a stop or a cancelled actor calls end_early(), which asks the reactor to complete the
// operation now.
#include "troupe/io/operations/suspension.hpp"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "io/kernel/peer.hpp"
#include "io/reactor/reactor.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/read_ahead.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::io {
namespace {

void trace_end(const operation& operation) noexcept {
  if (!observe::is_recorded(observe::event::io_end)) [[likely]]
    return;
  observe::record(observe::event::io_end, name_of(operation.opcode),
                  operation.done != 0 ? operation.done
                                      : static_cast<std::uint64_t>(std::int64_t{operation.result}));
}

// A write that is over at once: the program takes the same way whether or not it is traced.
void trace_write(const descriptor& descriptor, std::int32_t sent) noexcept {
  const char* const name = name_of(action::write);
  if (observe::tracing())
    observe::record(observe::event::io_begin, name, static_cast<std::uint64_t>(descriptor.fd()));
  observe::record(observe::event::io_end, name,
                  static_cast<std::uint64_t>(static_cast<std::int64_t>(sent)));
}

bool is_read_ahead(const operation& operation) noexcept {
  return operation.opcode == action::read && (operation.behind & read_ahead::is_ahead) != 0;
}

}  // namespace

void begin_wait(operation_suspension*& waiting, action opcode) {
  waiting = ::new (memory::allocate(sizeof(operation_suspension))) operation_suspension(opcode);
}
void begin_wait(limited_suspension*& waiting, action opcode) {
  waiting = ::new (memory::allocate(sizeof(limited_suspension))) limited_suspension(opcode);
}

// Its reader or the slot holds the bytes that it was given.
void operation_suspension::end_read_ahead() const noexcept {
  if (!is_read_ahead(*this) || at == nullptr) return;
  const std::lock_guard lock(at->mutex);
  if (at->generation == generation_) at->reads_ahead = false;  // else the slot is another stream's
}

void end_wait(operation_suspension* wait) noexcept {
  wait->end_read_ahead();
  std::destroy_at(wait);
  memory::deallocate(wait, sizeof(operation_suspension));
}
void end_wait(limited_suspension* wait) noexcept {
  wait->end_read_ahead();
  std::destroy_at(wait);
  memory::deallocate(wait, sizeof(limited_suspension));
}

std::int32_t write_at_once(tasks::coroutine& awaiting, const descriptor& descriptor,
                           std::string_view bytes, bool whole) noexcept {
  tasks::async_call& call = *awaiting.call;
  slot* const at = descriptor.bound_to(*call.at->io);
  const bool others_turn = call.ready_left() <= operation_suspension::share;
  if (at == nullptr || bytes.empty() || bytes.size() > INT32_MAX || call.cancelled || others_turn)
    return 0;
  // A write that is refused also counts. Otherwise a coroutine that keeps writing to a peer that
  // has disconnected would let no other turn run.
  static_cast<void>(call.spend(operation_suspension::share));  // some units are left
  const std::int32_t sent = at->owner->write_at_once(*at, bytes, whole);
  // A part of a whole write is counted with the rest.
  const bool is_over =
      sent < 0 || (sent > 0 && (!whole || static_cast<std::size_t>(sent) == bytes.size()));
  if (is_over && observe::is_recorded(observe::event::io_end)) [[unlikely]]
    trace_write(descriptor, sent);
  if (operation_counts* const counts = at->owner->counted.get(); counts != nullptr && is_over)
      [[unlikely]]
    counts->add_write(sent);
  return sent;
}

void give_up_rest(const descriptor& descriptor) noexcept {
  if (slot* const at = descriptor.bound()) at->owner->give_up_rest(*at);
}

reactor& operation_suspension::owner() const noexcept { return *at->owner; }

bool operation_suspension::suspend(tasks::coroutine& awaiting, descriptor& on) {
  waiter = &awaiting;
  tasks::async_call& call = *awaiting.call;
  if (call.cancelled) {
    end_early(reason::cancelled);
    result = -ECANCELED;
    return false;
  }
  at = &on.bind(*call.at->io);
  generation_ = at->generation;
  if (is_read_ahead(*this)) {
    const std::lock_guard lock(at->mutex);
    at->reads_ahead = true;
  }
  // write_at_once() has tried it, with this result
  if (opcode == action::write && result < 0) return false;
  excused = weak;
  in_turn = leased;
  if (observe::tracing()) [[unlikely]]
    observe::record(observe::event::io_begin, name_of(opcode), static_cast<std::uint64_t>(on.fd()));
  // A read into an empty buffer completes at once: it must not wait for a byte that may never come.
  const bool is_empty = opcode == action::read && bytes == 0 && !leased;
  if (!is_empty && !take_kept() && !owner().begin(*this)) {
    call.refill();
    // Even if the operation has ended already, this turn ends before the coroutine resumes.
    enlist(awaiting);
    return true;
  }
  trace_end(*this);
  if (call.spend(opcode == action::accept ? accept_share : share)) return false;
  call.refill();
  enlist(awaiting);
  call.at->go_on_later(*this);
  return true;
}

bool operation_suspension::take_kept() noexcept {
  // Only the reader may look: a writer is another thread.
  if (!can_be_kept(opcode) || at->kept == nullptr) [[likely]]
    return false;
  const bool is_done = at->kept->give(*this, *owner().buffers);
  if (!at->kept->empty()) return is_done;
  std::lock_guard lock(at->mutex);
  at->kept.reset();
  return is_done;
}

// Without memory the operation keeps its bytes.
void operation_suspension::give_back() noexcept {
  const bool is_partial = opcode == action::read && whole && result == -ECANCELED;
  const bool has_given = opcode == action::read ? done != 0 : result >= 0;
  if (at == nullptr || !has_given || !can_be_kept(opcode)) return;
  if (!is_partial && !waiter->call->cancelled) return;
  {
    std::lock_guard lock(at->mutex);
    const bool is_closed = at->generation != generation_ || at->fd < 0;
    // The bytes of a closed stream are lost with it. Its reader may have been dropped, and the
    // stream destroyed. The reader must not get them and go on.
    if (is_closed && opcode != action::read) return;
    try {
      if (!is_closed) {
        if (at->kept == nullptr) at->kept = std::make_unique<kept_input>();
        at->kept->put_back(*this);
      }
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  if (leased) owner().buffers->give(std::exchange(data, nullptr));
  done = 0;
  if (result == -ECANCELED) return;
  reason none = reason::none;
  // order: relaxed  the operation is over, and no other thread touches it
  why_.compare_exchange_strong(none, reason::cancelled, std::memory_order_relaxed);
  result = -ECANCELED;
}

void operation_suspension::on_completed() noexcept {
  if (!due) trace_end(*this);
  over(tasks::outcome::arrived);
}

// Any thread may call it, until the coroutine resumes.
void operation_suspension::end_early(reason why) noexcept {
  reason none = reason::none;
  // order: relaxed  read after the suspension has ended, which orders it
  why_.compare_exchange_strong(none, why, std::memory_order_relaxed);
  if (at != nullptr) owner().cancel(*this);
}

const char* operation_suspension::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "I/O";
  auto& self = static_cast<operation_suspension&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::detach) {
    self.end_early(reason::cancelled);
    return nullptr;  // its completion is on its way
  }
  // At the end of the runtime no other thread polls for completions: this one does.
  if (act == sched::message_act::reclaim) {
    // order: acquire  the thread that ended the suspension is done with it; pairs with
    // suspension::arrive/release
    while (!self.reclaimable.load(std::memory_order_acquire)) self.owner().drive();
    if (self.due) self.owner().give_up(self);
  }
  if (act == sched::message_act::handle && self.due && !self.carry_out()) return nullptr;
  return arrive(self, act);
}

// Runs in the coroutine's turn. Returns false when the bytes that were reported are no longer
// there.
bool operation_suspension::carry_out() noexcept {
  if (owner().carry_out(*this)) {
    if (operation_counts* const counts = owner().counted.get()) [[unlikely]]
      counts->end(*this);
    trace_end(*this);
    return true;
  }
  // A request to end the operation while it was due had no effect: it is repeated here.
  // order: relaxed  before, and so seen behind the slot's mutex; or its cancel() comes after it
  if (why_.load(std::memory_order_relaxed) != reason::none) owner().cancel(*this);
  return false;
}

std::string operation_suspension::peer() const {
  if (at == nullptr) return "a closed descriptor";
  std::lock_guard lock(at->mutex);
  return at->generation == generation_ && at->fd >= 0 ? peer_of(owner().calls, at->fd)
                                                      : "a closed descriptor";
}

void operation_suspension::check(const char* name) const {
  if (result >= 0) return;
  if (result == -ECANCELED) {
    // order: relaxed  ordered by the end of the suspension
    if (why_.load(std::memory_order_relaxed) == reason::timed_out) {
      throw timed_out(std::string("troupe: ") + name + ": it did not come about in time");
    }
    throw cancelled(std::string("troupe: ") + name + ": cancelled, or its descriptor was closed");
  }
  throw io_error(literal::of_table(name), peer(), -result);
}

void operation_suspension::close_result() noexcept {
  if (at != nullptr && !pending && result >= 0)
    owner().calls.close(std::exchange(result, -ECANCELED));
}

io_buffer operation_suspension::take_buffer() noexcept {
  if (at == nullptr || pending || data == nullptr) return {};
  return io_buffer(*owner().buffers, std::exchange(data, nullptr), done);
}

void operation_suspension::check_whole(const char* name) const {
  check(name);
  if (done < bytes) throw end_of_stream(name, peer(), done);
}

bool limited_suspension::suspend(tasks::coroutine& awaiting, descriptor& on,
                                 std::chrono::nanoseconds at_most, const std::stop_token& stop) {
  // The rest of a write that was begun at once is started in any case, because other writes wait
  // for it, and is then ended like any other operation.
  if (done == 0 && (at_most.count() <= 0 || stop.stop_requested())) {
    end_early(stop.stop_requested() ? reason::cancelled : reason::timed_out);
    result = -ECANCELED;
    return false;
  }
  if (!operation_suspension::suspend(awaiting, on)) return false;
  // From here on the operation may end at any time. This object still exists, because its coroutine
  // resumes only after this turn.
  try {
    tasks::timers& clock = *awaiting.call->at->clock;
    timer::weak = operation::weak;
    if (at_most != std::chrono::nanoseconds::max()) {
      tasks::arm(clock, *this, tasks::due_in(clock, at_most));
      armed_ = true;
    }
    if (stop.stop_possible()) stop_.emplace(stop, on_stop{*this});
  } catch (...) {
    // the caller asked for a limit: the operation must not run without it
    end_early(reason::timed_out);
  }
  return true;
}

void limited_suspension::release() noexcept {
  stop_.reset();  // waits for a callback that is running
  if (armed_) tasks::cancel(*waiter->call->at->clock, *this);
}

}  // namespace troupe::io
