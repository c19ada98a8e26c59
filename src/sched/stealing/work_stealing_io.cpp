// The pool's part in I/O: who looks into the poller, and who sleeps there (docs/protocols/io.md).
#include "sched/stealing/work_stealing.hpp"

#include "troupe/observe/trace.hpp"

namespace troupe::sched {

// A worker that never runs dry looks into the poller by the clock: else what comes there waits as
// long as all are busy.
void work_stealing::poll(worker& self) {
  take_io(self, true);
  // Who went to sleep meanwhile may have found the door shut (D2).
  // order: relaxed  behind the door's fence
  if (idle_workers_.lonely().load(std::memory_order_relaxed) != 0 && unattended())
    wake(idle_workers_.call());
}

// Inside the lock, out of work. Who serves many connections finds the next requests here, before it
// has put away all that defers its deactivation, which they are for: io/echo_64 gains 3 %. Where
// I/O is rare, it is not looked at twice (io_keeps_coming).
bool work_stealing::poll_once_more(worker& self) {
  self.lock.leave();
  self.io_keeps_coming = take_io(self, false);
  self.lock.enter();
  return !self.queue.empty();
}

bool work_stealing::take_io(worker& self, bool busy) {
  // order: acquire  sees the poller whole; pairs with attach/release
  poller* io = poller_.load(std::memory_order_acquire);
  if (io == nullptr || !io->door.try_enter()) return false;
  if (!io->look(busy)) {
    io->door.leave();
    return false;
  }
  take_what_came(self);
  return true;
}

// What is inside belongs to this worker from here on: it is busy before any of it is in its queue
// (C1, W3).
void work_stealing::take_what_came(worker& self) {
  // order: relaxed  its own
  if (!self.busy.load(std::memory_order_relaxed)) {
    alive_.enter();
    show_busy(self);
  }
  // order: acquire  as take_io
  poller* io = poller_.load(std::memory_order_acquire);
  io->dispatch();
  io->door.leave();
}

rested work_stealing::rest(worker& self, const std::chrono::nanoseconds* limit,
                           bool inside) noexcept {
  const observe::parked here;
  // order: relaxed (both)  a statistic, written by the owner
  self.parks.store(self.parks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // order: acquire  as take_io
  poller* io = poller_.load(std::memory_order_acquire);
  if (io != nullptr && inside && io->door.try_enter()) return rest_inside(*io, self.parker, limit);
  if (limit != nullptr) return self.parker.wait_for(*limit) ? rested::notified : rested::over;
  self.parker.wait();
  return rested::notified;
}

bool work_stealing::unattended() const noexcept {
  // order: relaxed  behind the caller's fence
  const poller* io = poller_.load(std::memory_order_relaxed);
  return io != nullptr && io->door.is_open();
}

// Those who sleep already do so where no I/O comes: one of them must go inside.
void work_stealing::attach(poller& io) noexcept {
  // order: release  publishes the poller; pairs with the acquires of its users
  poller_.store(&io, std::memory_order_release);
  wake(idle_workers_.call());
}

void work_stealing::notify(worker& one) noexcept {
  // order: acquire  it sleeps in the poller, which it has seen
  if (one.parker.notify()) poller_.load(std::memory_order_acquire)->wake();
}

}  // namespace troupe::sched
