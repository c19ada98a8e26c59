#include "observe/ring.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include "base/thread_name.hpp"
#include "base/threads/crash_stack.hpp"
#include "observe/ticks.hpp"

namespace troupe::observe {

namespace {

constinit std::atomic<ring*> rings{nullptr};
// after that, a new thread takes the ring of one that has ended
constexpr unsigned rings_max = 1024;

// The object is never destroyed: threads may end after the program's statics.
std::mutex& rings_mutex() {
  static std::mutex& instance = *new std::mutex;
  return instance;
}

constinit thread_local listener* listens [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local ring* of_thread [[gnu::tls_model("initial-exec")]] = nullptr;
// True when the thread ends, or memory has run out.
constinit thread_local bool without [[gnu::tls_model("initial-exec")]] = false;

struct leaving {
  bool armed = false;
  ~leaving() {
    // order: release  publishes its last event; pairs with the thread that takes the ring over
    if (of_thread != nullptr) of_thread->in_use.store(false, std::memory_order_release);
    of_thread = nullptr;
    without = true;
  }
};
thread_local leaving left;

ring* take_over(ring* first) noexcept {
  for (ring* candidate = first; candidate != nullptr; candidate = candidate->next) {
    // order: acquire  sees its last event; pairs with leaving
    if (!candidate->in_use.load(std::memory_order_acquire)) {
      // order: relaxed  under the mutex
      candidate->in_use.store(true, std::memory_order_relaxed);
      return candidate;
    }
  }
  return nullptr;
}

TROUPE_NOINLINE ring* make_ring() noexcept {
  if (without) return nullptr;
  std::lock_guard lock(rings_mutex());
  // order: relaxed  under the mutex
  ring* const first = rings.load(std::memory_order_relaxed);
  ring* own_ring = first != nullptr && first->number >= rings_max ? take_over(first) : nullptr;
  if (own_ring == nullptr) {
    void* room = std::malloc(ring::size * sizeof(ring::events_of_thread::slot));
    if (room == nullptr) return nullptr;
    own_ring = new (std::nothrow) ring(room, first == nullptr ? 1 : first->number + 1, first);
    if (own_ring == nullptr) {
      std::free(room);
      return nullptr;
    }
    ::pthread_getname_np(::pthread_self(), own_ring->name, sizeof own_ring->name);
    // order: release  the ring is complete; pairs with first_ring
    rings.store(own_ring, std::memory_order_release);
  }
  // order: relaxed  soon enough if seen late; a ring with events of a worker keeps the flag
  if (base::worker_number != 0 || ::gettid() == ::getpid())
    own_ring->lasts.store(true, std::memory_order_relaxed);
  left.armed = true;
  base::make_crash_stack();
  return of_thread = own_ring;
}

}  // namespace

// order: acquire  pairs with make_ring
const ring* first_ring() noexcept { return rings.load(std::memory_order_acquire); }

void record_beside(void (*put)(event kind, const char* text, std::uint64_t id) noexcept) noexcept {
  beside.store(put, std::memory_order_relaxed);  // order: relaxed  a function of the program
}

void listen_here(listener* by) noexcept { listens = by; }

listener* listener_here() noexcept { return listens; }

namespace {

void put(ring& target, kind_and_message kind, const char* text, std::uint64_t id) noexcept {
  target.events.put({now_ticks(), id, reinterpret_cast<std::uintptr_t>(text), kind.packed()});
}

// In a trace.
void record_traced(kind_and_message kind, const char* text, std::uint64_t id) noexcept {
  if (listens != nullptr) listens->hear(*listens, kind.kind, text, id);
  ring* to = of_thread;
  if (to == nullptr) [[unlikely]] {
    to = make_ring();
    if (to == nullptr) return;
  }
  put(*to, kind, text, id);
}

}  // namespace

void mark_in_ring(const char* text) noexcept {
  if (ring* const own = of_thread) put(*own, {event::mark}, text, 0);
}

TROUPE_NOINLINE void record(event kind, const char* text, std::uint64_t id) noexcept {
  if (is_beside(kind)) {
    // order: relaxed  as record_beside
    if (const auto put_beside = beside.load(std::memory_order_relaxed)) put_beside(kind, text, id);
    if (!tracing()) return;
  }
  record_traced({kind}, text, id);
}

TROUPE_NOINLINE void record_message(event kind, const char* text, std::uint64_t id,
                                    const void* message) noexcept {
  record_traced({kind, reinterpret_cast<std::uintptr_t>(message)}, text, id);
}

}  // namespace troupe::observe
