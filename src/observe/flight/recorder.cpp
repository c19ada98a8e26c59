#include "observe/flight/recorder.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

#include "base/threads/at_fork.hpp"
#include "base/threads/crash_stack.hpp"
#include "observe/kinds.hpp"
#include "observe/ring.hpp"

namespace troupe::observe {
namespace {

constinit std::atomic<flight_recorder*> recorders{nullptr};
constinit std::atomic<flight_recorder::look_function> looks{nullptr};
constinit std::atomic<flight_recorder::thread_function> threads{nullptr};
constinit std::atomic<std::size_t> records{0};  // of each ring
// after that, a new thread takes the recorder of one that has ended
constexpr unsigned recorders_max = 256;
// True when the thread ends, or memory has run out.
constinit thread_local bool without [[gnu::tls_model("initial-exec")]] = false;

// The object is never destroyed: threads may end after the program's statics.
std::mutex& recorders_mutex() {
  static std::mutex& instance = *new std::mutex;
  return instance;
}

void put_here(event kind, const char* text, std::uint64_t id) noexcept {
  if (flight_recorder* const own = flight_recorder::here()) own->put_event(kind, text, id);
}

}  // namespace

struct flight_recorder::leaving {
  bool armed = false;
  ~leaving() {
    if (of_thread_ != nullptr) {
      of_thread_->put_time();  // its last turns are not as young as the reader
      // order: release (both)  publishes its last record; pairs with the thread that takes it over
      of_thread_->thread_.store(nullptr, std::memory_order_release);
      of_thread_->in_use_.store(false, std::memory_order_release);
    }
    of_thread_ = nullptr;
    without = true;
  }
};

void flight_recorder::begin(std::size_t bytes) noexcept {
  std::size_t none = 0;
  const std::size_t size =
      std::bit_floor(std::clamp(bytes, bytes_least, bytes_most) / ring_of_turns::record_bytes);
  // order: relaxed  a number; no ring exists yet
  records.compare_exchange_strong(none, size, std::memory_order_relaxed);
  [[maybe_unused]] static const bool held =
      (base::hold_at_fork(recorders_mutex(), &forget_others), true);
  record_beside(&put_here);
}

flight_recorder::flight_recorder(std::byte* memory, std::size_t size,
                                 flight_recorder* older) noexcept
    : ring_(reinterpret_cast<ring_of_turns::number_word*>(memory),
            reinterpret_cast<ring_of_turns::code_word*>(memory + size * sizeof(std::uint32_t)),
            size),
      number_(older == nullptr ? 1 : older->number_ + 1),
      next_(older) {}

flight_recorder* flight_recorder::take_over(flight_recorder* newest) noexcept {
  for (flight_recorder* recorder = newest; recorder != nullptr; recorder = recorder->next_) {
    if (recorder->is_in_use()) continue;
    // A thread that a fork left behind may have been writing these.
    recorder->known_ = {};
    recorder->sleeps_again_ = false;
    // order: relaxed  under the mutex
    recorder->in_use_.store(true, std::memory_order_relaxed);
    return recorder;
  }
  return nullptr;
}

// In the child of a fork(): the stacks of the other threads are not there, but their last turns.
void flight_recorder::forget_others() noexcept {
  // order: relaxed  under the mutex
  flight_recorder* recorder = recorders.load(std::memory_order_relaxed);
  for (; recorder != nullptr; recorder = recorder->next_) {
    if (recorder == of_thread_) continue;
    // order: relaxed (both)  the child has no other thread yet
    recorder->thread_.store(nullptr, std::memory_order_relaxed);
    recorder->in_use_.store(false, std::memory_order_relaxed);
  }
}

// The pages of a ring are touched when its first records come to them.
flight_recorder* flight_recorder::make_new(flight_recorder* older) noexcept {
  // order: relaxed  begin() came before the thread's first record
  const std::size_t size = records.load(std::memory_order_relaxed);
  if (size == 0) return nullptr;
  const std::size_t bytes = size * ring_of_turns::record_bytes;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const recorder =
      new (std::nothrow) flight_recorder(static_cast<std::byte*>(memory), size, older);
  if (recorder == nullptr) ::munmap(memory, bytes);
  return recorder;
}

TROUPE_NOINLINE flight_recorder* flight_recorder::make() noexcept {
  static thread_local leaving left;
  if (without) return nullptr;
  std::lock_guard lock(recorders_mutex());
  // order: relaxed  under the mutex
  flight_recorder* const newest = recorders.load(std::memory_order_relaxed);
  flight_recorder* recorder =
      newest != nullptr && newest->number_ >= recorders_max ? take_over(newest) : nullptr;
  if (recorder == nullptr) {
    recorder = make_new(newest);
    if (recorder == nullptr) {
      without = true;
      return nullptr;
    }
    ::pthread_getname_np(::pthread_self(), recorder->name_, sizeof recorder->name_);
    // order: release  the recorder is complete; pairs with first
    recorders.store(recorder, std::memory_order_release);
  }
  // order: relaxed  as look_by
  if (const thread_function thread = threads.load(std::memory_order_relaxed)) {
    // order: release  a reader sees the thread's state; pairs with running
    recorder->thread_.store(thread(), std::memory_order_release);
  }
  left.armed = true;
  base::make_crash_stack();
  of_thread_ = recorder;
  recorder->put_time();
  return recorder;
}

// order: acquire  pairs with make
const flight_recorder* flight_recorder::first() noexcept {
  return recorders.load(std::memory_order_acquire);
}

const void* list_of_recorders() noexcept { return &recorders; }

void flight_recorder::look_by(look_function look, thread_function thread) noexcept {
  // order: relaxed (both)  functions of the program
  looks.store(look, std::memory_order_relaxed);
  threads.store(thread, std::memory_order_relaxed);
}

running_now flight_recorder::running() const noexcept {
  // order: acquire  pairs with make
  const void* const thread = thread_.load(std::memory_order_acquire);
  // order: relaxed  as look_by
  const look_function look = looks.load(std::memory_order_relaxed);
  return thread == nullptr || look == nullptr ? running_now() : look(thread);
}

TROUPE_NOINLINE std::uint16_t flight_recorder::learn(std::uint64_t key,
                                                     const subjects::description& is) noexcept {
  const auto code = static_cast<std::uint16_t>(subjects::find_or_add(key, is) << subjects::shift);
  known_for(key) = {key, code};
  return code;
}

// The next time comes sooner when turns are slow: then each has its own.
TROUPE_NOINLINE void flight_recorder::put_time() noexcept {
  constexpr std::uint64_t ticks_between = 4000;
  constexpr std::uint16_t code = subjects::time << subjects::shift;
  const std::uint64_t now = now_ticks(), coarse = now >> tick_shift;
  const auto low = static_cast<std::uint16_t>(coarse >> number_bits & subjects::time_low_mask);
  std::uint64_t written =
      ring_.put({static_cast<std::uint32_t>(coarse), static_cast<std::uint16_t>(code | low)});
  if (const std::uint64_t high = coarse >> time_bits; high != high_) {
    written = ring_.put({static_cast<std::uint32_t>(high), subjects::time_high << subjects::shift});
    high_ = high;
  }
  // without a division, which costs as much as a turn
  const std::uint64_t span = now - timed_ticks_;
  turns_a_time_ =
      span > ticks_between
          ? std::max(turns_a_time_ / 8, 1u)
          : std::min(turns_a_time_ * (span < ticks_between / 2 ? 2 : 1), turns_a_time_max);
  time_after_ = written + turns_a_time_;
  timed_ticks_ = now;
  if (now >= rate_after_) measure_rate(now);
}

// A core file has no clock: the rate must be in it.
void flight_recorder::measure_rate(std::uint64_t ticks) noexcept {
  const tick_scale now;
  // order: relaxed  a number
  rate_.store(rate_since_begin(now), std::memory_order_relaxed);
  constexpr std::uint64_t least = std::uint64_t{1} << 20, most = std::uint64_t{1} << 34;
  rate_after_ = ticks + std::clamp(ticks - began_.ticks, least, most);
}

TROUPE_NOINLINE void flight_recorder::put_event(event kind, const char* text,
                                                std::uint64_t number) noexcept {
  if (kind == event::park_begin && ring_.written() == woke_) {
    sleeps_again_ = true;
    return;
  }
  if (kind == event::park_end && std::exchange(sleeps_again_, false)) {
    put_time();
    woke_ = ring_.written();
    return;
  }
  const void* const at = text != nullptr ? text : kinds[static_cast<std::size_t>(kind)].name;
  const std::uint64_t key = subjects::key_of(kind, at);
  const known& is = known_for(key);
  const std::uint16_t code = is.key == key ? is.code : learn(key, {kind, nullptr, text, 0});
  ring_.put({static_cast<std::uint32_t>(number), code});
  put_time();
  if (kind == event::park_end) woke_ = ring_.written();
}

}  // namespace troupe::observe
