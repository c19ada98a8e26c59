// Invariants, all under the mutex
//   P1  total = idle resources + resources and makings that slots hold; total <= max. A resource
//       is made only in a slot, when none is idle or total is below min: the permits of all slots
//       are at most max, so that there is room for it.
//   P2  an idle resource is in the list, which is sorted by the time since which each is idle.
//   P3  once closed, no resource becomes idle, and there are permits for all who wait or will wait:
//       each of them finds the pool closed.
#include "troupe/kit/pool_core.hpp"

#include <algorithm>
#include <mutex>

#include "base/invariant.hpp"
#include "kit/clock_and_random.hpp"

namespace troupe::kit {

class pool_core::clock_state {
 public:
  object_clock clock;
};

// Resources to be destroyed without the mutex, since their destructors are the user's.
struct pool_core::doomed {
  doomed() = default;
  doomed(const doomed&) = delete;
  doomed& operator=(const doomed&) = delete;
  ~doomed() {
    while (pool_entry* const entry = first) {
      first = entry->newer;
      entry->destroy(*entry);
    }
  }
  void add(pool_entry& entry) noexcept { entry.newer = std::exchange(first, &entry); }
  pool_entry* first = nullptr;
};

pool_core::pool_core(const pool_options& given)
    : options(given), permits_(given.max), clock_(std::make_unique<clock_state>()) {
  if (options.max == 0 || options.max > sync::permits::most / 4)
    throw option_error("troupe: pool: `max` must be at least 1");
  if (options.min > options.max) throw option_error("troupe: pool: `min` must be at most `max`");
  if (options.idle_max.count() <= 0 || options.life_max.count() <= 0 ||
      options.look_every.count() <= 0 || options.check_after.count() < 0)
    throw option_error(
        "troupe: pool: idle_max, life_max and look_every must be longer than zero, and check_after "
        "not negative");
}

pool_core::~pool_core() {
  doomed all;
  while (oldest_ != nullptr) {
    pool_entry& entry = *oldest_;
    remove(entry);
    all.add(entry);
  }
}

std::int64_t pool_core::now_ns() const noexcept { return clock_->clock.now_ns(); }

std::int64_t pool_core::read_clock() const noexcept {
  const std::lock_guard lock(mutex_);
  return now_ns();
}

// A caller that does not wait pays for one of the counts.
void pool_core::note_wait(std::chrono::nanoseconds waited) noexcept {
  const std::int64_t waited_ns = waited.count();
  std::size_t bucket = 0;
  if (waited_ns > 0) {
    const double seconds = static_cast<double>(waited_ns) / 1e9;
    bucket = static_cast<std::size_t>(std::ranges::lower_bound(pool_wait_seconds, seconds) -
                                      pool_wait_seconds.begin());
    // order: relaxed  a statistic; publishes nothing
    waited_ns_.fetch_add(waited_ns, std::memory_order_relaxed);
  }
  waits_[bucket].fetch_add(1, std::memory_order_relaxed);  // order: relaxed  as above
}

bool pool_core::is_old(const pool_entry& entry, std::int64_t now) const noexcept {
  return now - entry.made_ns >= options.life_max.count();
}

void pool_core::insert(pool_entry& entry) noexcept {
  TROUPE_INVARIANT(!closed_, "P3");
  pool_entry* before = newest_;
  while (before != nullptr && before->idle_ns > entry.idle_ns) before = before->older;
  pool_entry* const after = before == nullptr ? oldest_ : before->newer;
  TROUPE_INVARIANT(after == nullptr || after->idle_ns > entry.idle_ns, "P2");
  entry.older = before;
  entry.newer = after;
  (before == nullptr ? oldest_ : before->newer) = &entry;
  (after == nullptr ? newest_ : after->older) = &entry;
  ++idle_;
}

void pool_core::remove(pool_entry& entry) noexcept {
  (entry.older == nullptr ? oldest_ : entry.older->newer) = entry.newer;
  (entry.newer == nullptr ? newest_ : entry.newer->older) = entry.older;
  entry.older = entry.newer = nullptr;
  --idle_;
}

// Under the mutex. Sets no event here: that wakes others.
void pool_core::note_gone(std::size_t count) noexcept {
  TROUPE_INVARIANT(total_ >= count, "P1");
  total_ -= count;
  done_.destroyed += count;
}

// Those that were idle for too long, down to `min`, and those that are too old.
void pool_core::drop_old(std::int64_t now, doomed& to_destroy) noexcept {
  for (pool_entry* entry = oldest_; entry != nullptr;) {
    pool_entry* const next = entry->newer;
    const bool idle_too_long =
        now - entry->idle_ns >= options.idle_max.count() && total_ > options.min;
    if (idle_too_long || is_old(*entry, now)) {
      remove(*entry);
      note_gone(1);
      to_destroy.add(*entry);
    }
    entry = next;
  }
}

// The newest, so that the others may become idle for too long.
pool_entry* pool_core::pop_newest(doomed& to_destroy) noexcept {
  drop_old(now_ns(), to_destroy);
  pool_entry* const entry = newest_;
  if (entry != nullptr) remove(*entry);
  return entry;
}

bool pool_core::slot::take() {
  doomed gone;  // destroyed after the mutex was left
  const std::lock_guard lock(pool_->mutex_);
  if (entry_ != nullptr) {
    pool_->note_gone(1);
    gone.add(*std::exchange(entry_, nullptr));
  }
  if (pool_->closed_) throw pool_closed("troupe: pool: it was closed; borrow before close()");
  entry_ = pool_->pop_newest(gone);
  if (entry_ != nullptr) return true;
  TROUPE_INVARIANT(pool_->total_ < pool_->options.max, "P1");
  ++pool_->total_;
  makes_ = true;
  return false;
}

bool pool_core::slot::wants_check() const noexcept {
  const std::lock_guard lock(pool_->mutex_);
  return pool_->now_ns() - entry_->idle_ns >= pool_->options.check_after.count();
}

void pool_core::slot::fill(pool_entry& filled) noexcept {
  const std::lock_guard lock(pool_->mutex_);
  filled.made_ns = filled.idle_ns = pool_->now_ns();
  entry_ = &filled;
  makes_ = false;
  ++pool_->done_.made;
}

void pool_core::slot::lend() noexcept {
  const std::lock_guard lock(pool_->mutex_);
  ++pool_->done_.lent;
}

void pool_core::slot::put_back() noexcept {
  {
    doomed gone;
    const std::lock_guard lock(pool_->mutex_);
    const std::int64_t now = pool_->now_ns();
    if (!pool_->closed_ && !pool_->is_old(*entry_, now)) {
      entry_->idle_ns = now;
      pool_->insert(*std::exchange(entry_, nullptr));
    }
  }
  end();
}

void pool_core::slot::end() noexcept {
  pool_core* const pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  bool is_last = false;
  {
    doomed gone;
    const std::lock_guard lock(pool->mutex_);
    if (entry_ != nullptr) {
      pool->note_gone(1);
      gone.add(*std::exchange(entry_, nullptr));
    } else if (std::exchange(makes_, false)) {
      --pool->total_;
      ++pool->done_.failed;
    }
    is_last = pool->closed_ && pool->total_ == 0;
  }
  // The resource is destroyed before the next one may be made. The caller keeps the core.
  pool->permits_.give(1);
  if (is_last) pool->drained_.set();
}

pool_core::slot pool_core::try_take() {
  if (!permits_.try_take(1)) return {};
  slot mine(*this);
  doomed gone;
  const std::lock_guard lock(mutex_);
  if (closed_) return {};
  const std::int64_t now = now_ns();
  drop_old(now, gone);
  if (newest_ == nullptr || now - newest_->idle_ns >= options.check_after.count()) return {};
  mine.entry_ = newest_;
  remove(*newest_);
  ++done_.lent;
  return mine;
}

std::uint64_t pool_core::begin_look() noexcept {
  doomed gone;
  const std::lock_guard lock(mutex_);
  drop_old(now_ns(), gone);
  return ++look_;
}

pool_core::slot pool_core::next_of_look(std::uint64_t look) noexcept {
  if (!permits_.try_take(1)) return {};
  slot mine(*this);
  const std::lock_guard lock(mutex_);
  pool_entry* entry = oldest_;
  while (entry != nullptr && entry->looked_at == look) entry = entry->newer;
  const bool was_just_used =
      entry != nullptr && now_ns() - entry->idle_ns < options.check_after.count();
  if (entry == nullptr || was_just_used || closed_) return {};
  entry->looked_at = look;
  remove(*entry);
  mine.entry_ = entry;
  return mine;
}

void pool_core::end_look(slot&& checked, bool is_good) noexcept {
  slot mine(std::move(checked));
  if (!is_good) return;
  const std::lock_guard lock(mutex_);
  if (!closed_) insert(*std::exchange(mine.entry_, nullptr));
}

pool_core::slot pool_core::take_missing() noexcept {
  if (!permits_.try_take(1)) return {};
  slot mine(*this);
  const std::lock_guard lock(mutex_);
  if (closed_ || total_ >= options.min) return {};
  ++total_;
  mine.makes_ = true;
  return mine;
}

bool pool_core::is_closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void pool_core::close() noexcept {
  bool is_empty = false;
  {
    doomed gone;
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    while (pool_entry* const entry = newest_) {
      remove(*entry);
      note_gone(1);
      gone.add(*entry);
    }
    is_empty = total_ == 0;
  }
  permits_.give(sync::permits::most / 2);  // P3
  if (is_empty) drained_.set();
}

pool_counts pool_core::counts() const noexcept {
  const std::lock_guard lock(mutex_);
  pool_counts seen = done_;
  seen.idle = idle_;
  seen.in_use = total_ - idle_;
  // order: relaxed  a statistic
  seen.waiting = waiting_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < waits_.size(); ++i)
    seen.waits[i] = waits_[i].load(std::memory_order_relaxed);  // order: relaxed  as above
  // order: relaxed  as above
  seen.waited = std::chrono::nanoseconds(waited_ns_.load(std::memory_order_relaxed));
  return seen;
}

}  // namespace troupe::kit
