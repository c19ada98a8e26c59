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

simulated::simulated(std::uint64_t seed, outstanding_work& alive,
                     std::unique_ptr<choice_source> source)
    : alive_(alive), seed_(seed), source_(std::move(source)) {
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

std::uint64_t simulated::decide(const choice_point& at) {
  const std::uint64_t chosen = source_->decide(at);
  ++choices_;
  // the steps of FNV-1a
  hash_ = (hash_ ^ (chosen + static_cast<std::uint64_t>(at.kind))) * 1'099'511'628'211u;
  return chosen;
}

void simulated::begin(connection_choices& choices) {
  {
    std::lock_guard lock(mutex_);
    static_cast<lineage&>(choices) = names_.new_child(in_turn());
  }
  source_->begin(choices);
}

fault simulated::storage_fault(fault_point where, lineage* storage) {
  // A seed has no faults, and its names do not change.
  if (!source_->asks_always()) return fault::none;
  if (storage != nullptr && storage->name == program_name) {
    std::lock_guard lock(mutex_);
    *storage = names_.new_child(in_turn());
  }
  return source_->fault_at(where, storage);
}

executor& simulated::add_lane() {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::make_unique<lane>(*this));
  return *lanes_.back();
}

void simulated::submit_to(lane& to, runnable& item) noexcept {
  alive_.enter();
  std::lock_guard lock(mutex_);
  names_.name_if_new(item, in_turn());
  put(to, item);
}

// Under the mutex.
void simulated::put(lane& target, runnable& item) noexcept {
  target.queue.push(item);
  tell();
}

// The runnables that may run: `of_pool` of the pool, then the oldest of each other lane. Under the
// mutex.
struct simulated::ready final : choice_candidates {
  explicit ready(simulated& scheduler)
      : all(scheduler), of_pool(std::min(scheduler.lanes_[0]->queue.count(), choices_max)) {
    count = of_pool;
    for (std::size_t i = 1; i < all.lanes_.size(); ++i)
      count += all.lanes_[i]->queue.empty() ? 0 : 1;
  }
  // The lane, and the place in it, of the nth.
  std::pair<lane*, std::size_t> place_of(std::size_t nth) const {
    if (nth < of_pool) return {all.lanes_[0].get(), nth};
    nth -= of_pool;
    std::size_t i = 1;
    while (all.lanes_[i]->queue.empty() || nth-- != 0) ++i;
    return {all.lanes_[i].get(), 0};
  }
  void list(std::vector<lineage>& candidates) const override {
    const runnable* item = all.lanes_[0]->queue.first();
    for (std::size_t i = 0; i < of_pool; ++i, item = runnable_queue::next(*item))
      candidates.push_back(all.names_.lineage_of(*item));
    for (std::size_t i = 1; i < all.lanes_.size(); ++i) {
      const runnable* const oldest = all.lanes_[i]->queue.first();
      if (oldest != nullptr) candidates.push_back(all.names_.lineage_of(*oldest));
    }
  }
  simulated& all;
  const std::size_t of_pool;
  std::size_t count;
};

bool simulated::step() {
  runnable* item = nullptr;
  lane* from = nullptr;
  {
    std::lock_guard lock(mutex_);
    const ready all(*this);
    if (all.count == 0) return false;
    const std::uint64_t chosen =
        all.count == 1 && !source_->asks_always()
            ? 0
            : decide({choice_kind::next, all.count, program_name, nullptr, &all});
    if (chosen == choice_source::time_passes) return false;
    const auto [lane, place] = all.place_of(chosen);
    from = lane;
    item = &from->queue.take(place);
    begin_turn(*item);
  }
  // order: relaxed (both)  a statistic, which this thread alone writes
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  advance_to(now_ns() + static_cast<std::int64_t>(choose(choice_kind::turn_time, 2'000)));
  const runnable_vtable& type = *item->type;
  const after_turn after = type.run(*item);
  const runnable_names::named known = end_turn(*item);
  if (after == after_turn::again || (is_quiet(after) && !type.deactivate(*item))) {
    std::lock_guard lock(mutex_);
    names_.restore(*item, known);
    put(*from, *item);
  } else {
    if (after == after_turn::gone) type.dispose(*item);
    if (alive_.leave()) poke();
  }
  source_->after_turn(now_ns());
  return true;
}

// Under the mutex.
void simulated::begin_turn(const runnable& item) noexcept {
  running_ = names_.begin_turn(item);
  runs_on_ = std::this_thread::get_id();
  hash_ = (hash_ ^ running_) * 1'099'511'628'211u;
}

// The runnable may be freed after this.
runnable_names::named simulated::end_turn(runnable& item) noexcept {
  std::lock_guard lock(mutex_);
  names_.end_turn();
  running_ = program_name;
  runs_on_ = {};
  return names_.forget(item);
}

bool simulated::poll_io() {
  if (io_ == nullptr || !io_->door.try_enter()) return false;
  const bool came = io_->poll(fetched_.events, false);
  io_->door.leave();
  if (came) io_->serve(fetched_.events);
  return came;
}

bool simulated::wait_outside(std::int64_t until_ns) {
  if (io_ == nullptr || until_ns <= now_ns() || !io_->awaits_outside()) return false;
  const auto began = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds longest = std::chrono::hours(24);
  const std::chrono::nanoseconds span(until_ns - now_ns());
  wait_until(began + std::min(span, longest));
  const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - began;
  advance_to(std::min<std::int64_t>(until_ns, now_ns() + passed.count()));
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
    const bool came = io_->wait(fetched_.events, &span);
    io_->door.leave();
    if (came) io_->serve(fetched_.events);
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
      names_.forget(*item);
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
