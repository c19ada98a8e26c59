#include "sched/policies/simulated.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sched/runnable_queue.hpp"

namespace troupe::sched {

struct simulated::lane final : executor {
  explicit lane(simulated& owner) : owner(owner) {}
  void submit(runnable& item) noexcept override { owner.submit_to(*this, item); }
  simulated& owner;
  runnable_queue queue;
};

namespace {

std::array<std::mt19937_64, 4> streams_of(std::uint64_t seed) {
  const auto stream_of = [seed](std::uint32_t number) {
    std::seed_seq from{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                       number};
    return std::mt19937_64(from);
  };
  return {std::mt19937_64(seed), stream_of(1), stream_of(2), stream_of(3)};
}

}  // namespace

simulated::simulated(std::uint64_t seed, outstanding_work& alive)
    : alive_(alive), seed_(seed), random_(streams_of(seed)) {
  add_lane();
}

simulated::~simulated() {
  shut_down();
  write_choices();
}

// TROUPE_CHOICES names a file, which gets a line for each simulated runtime that ends. Two runs
// that made the same choices have the same line.
void simulated::write_choices() const noexcept {
  const char* const path = std::getenv("TROUPE_CHOICES");
  if (path == nullptr || *path == '\0') return;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  std::array<char, 96> line;
  const int bytes = std::snprintf(
      line.data(), line.size(), "%llu %llu %016llx\n", static_cast<unsigned long long>(seed_),
      static_cast<unsigned long long>(choices_), static_cast<unsigned long long>(hash_));
  // a file that takes no line is not worth an error: nothing of the program depends on it
  static_cast<void>(!::write(fd, line.data(), static_cast<std::size_t>(bytes)));
  ::close(fd);
}

std::uint8_t simulated::ready_units(std::uint64_t seed, std::uint8_t most) noexcept {
  // of a stream of its own: the choices of turns do not depend on it
  std::mt19937_64 random(~seed);
  const std::uint64_t drawn = random();
  switch (drawn % 4) {
    case 0:
      return 1;
    case 1:
      return static_cast<std::uint8_t>(2 + (drawn >> 8) % 7);
    default:
      return most;
  }
}

executor& simulated::add_lane() {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::make_unique<lane>(*this));
  return *lanes_.back();
}

void simulated::submit_to(lane& to, runnable& item) noexcept {
  alive_.enter();
  put(to, item);
}

void simulated::put(lane& to, runnable& item) noexcept {
  std::lock_guard lock(mutex_);
  to.queue.push(item);
  tell();
}

bool simulated::step() {
  runnable* item = nullptr;
  lane* from = nullptr;
  {
    std::lock_guard lock(mutex_);
    const std::size_t of_pool = std::min(lanes_[0]->queue.count(), choices_max);
    std::size_t choices = of_pool;
    for (std::size_t i = 1; i < lanes_.size(); ++i) choices += lanes_[i]->queue.empty() ? 0 : 1;
    if (choices == 0) return false;
    std::size_t chosen = choose(choices);
    if (chosen < of_pool) {
      from = lanes_[0].get();
    } else {
      chosen -= of_pool;
      std::size_t i = 1;
      while (lanes_[i]->queue.empty() || chosen-- != 0) ++i;
      from = lanes_[i].get();
      chosen = 0;
    }
    item = &from->queue.take(chosen);
  }
  // order: relaxed (both)  a statistic, which this thread alone writes
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  advance_to(now_ns() + static_cast<std::int64_t>(choose(2'000, stream::time)));
  const runnable_vtable& type = *item->type;
  const after_turn after = type.run(*item);
  if (after == after_turn::again || (is_quiet(after) && !type.deactivate(*item))) {
    put(*from, *item);
    return true;
  }
  if (after == after_turn::gone) type.dispose(*item);
  if (alive_.leave()) poke();
  return true;
}

bool simulated::poll_io() {
  if (io_ == nullptr || !io_->door.try_enter()) return false;
  const bool came = io_->poll(false);
  if (came) io_->dispatch();
  io_->door.leave();
  return came;
}

bool simulated::wait_outside(std::int64_t until_ns) {
  if (io_ == nullptr || until_ns <= now_ns() || !io_->awaits_outside()) return false;
  const auto began = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds longest = std::chrono::hours(24);
  const std::chrono::nanoseconds span(until_ns - now_ns());
  wait_until(began + std::min(span, longest));
  const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - began;
  advance_to(std::min(until_ns, now_ns() + passed.count()));
  return true;
}

bool simulated::awaited() const {
  return poked_ || std::any_of(lanes_.begin(), lanes_.end(),
                               [](const auto& lane) { return !lane->queue.empty(); });
}

void simulated::wait_until(std::chrono::steady_clock::time_point limit) {
  std::unique_lock lock(mutex_);
  if (io_ == nullptr) {
    filled_.wait_until(lock, limit, [this] { return awaited(); });
  } else if (!awaited() && io_->door.try_enter()) {
    inside_ = true;
    lock.unlock();
    const auto span = std::max<std::chrono::nanoseconds>(limit - std::chrono::steady_clock::now(),
                                                         std::chrono::nanoseconds(0));
    if (io_->wait(&span)) io_->dispatch();
    io_->door.leave();
    lock.lock();
    inside_ = false;
  }
  poked_ = false;
}

void simulated::poke() {
  std::lock_guard lock(mutex_);
  poked_ = true;
  tell();
}

// Under the mutex.
void simulated::tell() {
  filled_.notify_all();
  if (inside_) io_->wake();
}

void simulated::shut_down() {
  for (const auto& lane : lanes_) {
    while (runnable* item = lane->queue.pop()) {
      item->type->discard(*item);
      static_cast<void>(alive_.leave());
    }
  }
}

std::size_t simulated::queued() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->queue.count();
  return sum;
}

std::vector<policy::counters> simulated::count() const {
  counters all;
  // order: relaxed  a statistic
  all.turns = turns_.load(std::memory_order_relaxed);
  all.queued = queued();
  return {all};
}

}  // namespace troupe::sched
