// cache: keeps values for a while, and loads each value once, when it is first needed.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "troupe/actor/sendable.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/kit/cache_core.hpp"
#include "troupe/kit/lru_map.hpp"
#include "troupe/kit/made_task.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

namespace kit {

template <class Key, class Value, class Hash>
class cache_state final : public cache_core {
 public:
  using held = std::shared_ptr<const Value>;  // so that values are copied without the mutex
  struct flight : cache_flight {
    held value;
    std::exception_ptr failed;
  };
  struct entry {
    held value;
    std::exception_ptr failed;  // of a load whose failure is kept
    entry_times times;
  };

  // One party that asks for a value: it has found the value or a kept failure, or it takes part in
  // a load. The key outlives it.
  class party {
   public:
    party(cache_state& cache, const Key& key) : cache_(cache), key_(key) { cache.look_up(*this); }
    party(const party&) = delete;
    party& operator=(const party&) = delete;
    ~party() {
      if (flight_ != nullptr) cache_.leave(*this);
    }
    flight* joined() const noexcept { return flight_.get(); }
    Value value() const {
      if (failed_ != nullptr) std::rethrow_exception(failed_);
      return *value_;
    }
    Value loaded() const {
      if (flight_->failed != nullptr) std::rethrow_exception(flight_->failed);
      return *flight_->value;
    }

   private:
    friend cache_state;
    cache_state& cache_;
    const Key& key_;
    held value_;
    std::exception_ptr failed_;
    std::shared_ptr<flight> flight_;
  };

  cache_state(const cache_options& given, unique_function<task<Value>(const Key&)> loads)
      : cache_core(given), load_(std::move(loads)) {}

  static task<Value> get(std::shared_ptr<cache_state> from, Key key, tasks::limits within) {
    party mine(*from, key);
    if (mine.joined() == nullptr) co_return mine.value();
    auto turn = mine.joined()->wait();
    if (within.any()) {
      co_await std::move(turn).timeout(within.left()).stop(within.stop());
    } else {
      co_await std::move(turn);
    }
    const flight_turn holds(*mine.joined());
    if (mine.joined()->is_over()) co_return mine.loaded();
    std::exception_ptr failed;
    try {
      task<held> load = from->load(key);
      task<held> limited = run_within(std::move(load), within, "a load of a cache");
      held loaded = co_await std::move(limited);
      from->end(mine, std::move(loaded), nullptr);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed != nullptr) {
      if (!gave_up(failed, within)) from->end(mine, nullptr, failed);
      std::rethrow_exception(std::move(failed));
    }
    co_return mine.loaded();
  }

  held find(const Key& key) {
    std::vector<entry>
        gone;  // destroyed after the mutex is unlocked, since destructors of values are user code
    const std::lock_guard lock(mutex_);
    const entry* const known = fresh(key, gone);
    const bool is_hit = known != nullptr && known->value != nullptr;
    ++(is_hit ? done_.hits : done_.misses);
    return is_hit ? known->value : nullptr;
  }
  void put(const Key& key, held value) {
    std::vector<entry> gone;
    const std::lock_guard lock(mutex_);
    loads_.erase(key);  // the value that is being loaded is older
    store(key, {std::move(value), nullptr, {}}, gone);
  }
  bool erase(const Key& key) {
    std::vector<entry> gone;
    const std::lock_guard lock(mutex_);
    loads_.erase(key);
    entry* const known = entries_.find(key);
    if (known == nullptr) return false;
    drop(key, *known, gone);
    return true;
  }
  void clear() {
    std::vector<entry> gone;
    const std::lock_guard lock(mutex_);
    loads_.clear();
    gone.reserve(entries_.size());
    entries_.erase_if([&](const Key&, entry& stored) {
      gone.push_back(std::move(stored));
      return true;
    });
  }
  void drop_expired() {
    std::vector<entry> gone;
    const std::lock_guard lock(mutex_);
    gone.reserve(entries_.size());
    const std::int64_t now = now_ns();
    entries_.erase_if([&](const Key&, entry& stored) {
      if (!is_expired(stored.times, stored.failed != nullptr, now)) return false;
      ++done_.expired;
      gone.push_back(std::move(stored));
      return true;
    });
  }
  cache_counts counts() const {
    const std::lock_guard lock(mutex_);
    cache_counts seen = done_;
    seen.entries = entries_.size();
    return seen;
  }

 private:
  // Call all of these under the mutex, except for load().
  task<held> load(const Key& key) {
    {
      const std::lock_guard lock(mutex_);
      ++done_.loads;
    }
    task<Value> making = load_(key);
    Value value = co_await std::move(making);
    co_return std::make_shared<const Value>(std::move(value));
  }
  void drop(const Key& key, entry& dropped, std::vector<entry>& gone) {
    gone.push_back(std::move(dropped));
    entries_.erase(key);
  }
  // The entry, which counts as used now; null if there is none, or if it has expired.
  entry* fresh(const Key& key, std::vector<entry>& gone) {
    entry* const known = entries_.use(key);
    if (known == nullptr) return nullptr;
    const std::int64_t now = now_ns();
    if (is_expired(known->times, known->failed != nullptr, now)) {
      ++done_.expired;
      drop(key, *known, gone);
      return nullptr;
    }
    known->times.used_ns = now;
    return known;
  }
  void store(const Key& key, entry&& added, std::vector<entry>& gone) {
    const std::int64_t now = now_ns();
    added.times = {now, now};
    entry& stored = entries_.emplace(key);
    gone.push_back(std::exchange(stored, std::move(added)));
    if (entries_.size() <= options.entries_max) return;
    ++done_.evicted;
    const Key oldest(*entries_.oldest());
    drop(oldest, *entries_.find(oldest), gone);
  }

  void look_up(party& asker) {
    std::vector<entry> gone;
    const std::lock_guard lock(mutex_);
    if (const entry* const known = fresh(asker.key_, gone)) {
      ++done_.hits;
      asker.value_ = known->value;
      asker.failed_ = known->failed;
      return;
    }
    ++done_.misses;
    std::shared_ptr<flight>& load = loads_[asker.key_];
    if (load == nullptr) {
      load = std::make_shared<flight>();
    } else {
      ++done_.joined;
    }
    asker.flight_ = load;
    ++asker.flight_->parties;
  }
  void leave(const party& asker) {
    const std::lock_guard lock(mutex_);
    if (--asker.flight_->parties == 0) forget_load(asker);
  }
  // Returns false if a put() or an erase() of the key has removed it before.
  bool forget_load(const party& asker) {
    const auto known = loads_.find(asker.key_);
    if (known == loads_.end() || known->second != asker.flight_) return false;
    loads_.erase(known);
    return true;
  }
  // The load is over, for all parties. The caller has its turn.
  void end(const party& asker, held value, std::exception_ptr failed) {
    flight& load = *asker.flight_;
    load.value = std::move(value);
    load.failed = std::move(failed);
    {
      std::vector<entry> gone;
      const std::lock_guard lock(mutex_);
      if (load.failed != nullptr) ++done_.failed;
      const bool keeps = load.failed == nullptr || options.keep_failures.count() > 0;
      if (forget_load(asker) && keeps) store(asker.key_, {load.value, load.failed, {}}, gone);
    }
    load.end();
  }

  unique_function<task<Value>(const Key&)> load_;
  lru_map<Key, entry, Hash> entries_;
  std::unordered_map<Key, std::shared_ptr<flight>, Hash> loads_;
};

// The call of get().
template <class Key, class Value, class Hash>
class cache_call {
 public:
  using result = Value;
  cache_call(std::shared_ptr<cache_state<Key, Value, Hash>> from, Key key)
      : from_(std::move(from)), key_(std::move(key)) {}
  task<Value> start(tasks::limits within) && {
    return cache_state<Key, Value, Hash>::get(std::move(from_), std::move(key_), std::move(within));
  }

 private:
  std::shared_ptr<cache_state<Key, Value, Hash>> from_;
  Key key_;
};

}  // namespace kit

// Keeps the values of keys, and loads those that it does not have. Parties that ask for the same
// key at the same time share one load: one of them runs it, the others wait. If that party is
// cancelled or its time is over, the next party loads. If a load fails, all waiting parties get its
// exception; unless keep_failures is set, the next get() loads again. Copies refer to the same
// cache.
//
// Thread: any, but get() is awaited in a handler or a task. `load` may be called by several threads
// at a time, for different keys; the hash and the comparison of keys run under a mutex. Cost:
// find() of a known key 40 ns, get() 60 ns, and a copy of the value: use a std::shared_ptr<const T>
// for large ones. Memory: 140 bytes for each entry, and the heap memory of its key and value. An
// expired entry keeps its memory until a get() or find() of its key, until newer entries replace
// it, or until drop_expired(). Errors: option_error. Limits: a load that asks the cache for its own
// key waits for itself.
//
// Example:
//     troupe::task<std::string> load_name(const int& id) {
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));  // asks a database
//       co_return "user " + std::to_string(id);
//     }
//     troupe::task<> greet(troupe::cache<int, std::string> names) {
//       std::cout << co_await names.get(7).timeout(std::chrono::seconds(1)) << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::cache<int, std::string> names({.expire_after_write = std::chrono::minutes(5)},
//                                             load_name);
//       for (int i = 0; i < 100; ++i) rt.spawn(greet(names));
//       rt.run();
//       std::cout << names.counts().loads << '\n';  // 1
//     }
template <class Key, class Value, class Hash = std::hash<Key>>
class cache {
  static_assert(std::is_object_v<Value> && std::copy_constructible<Value>,
                "troupe: cache: each caller gets a copy of the value: use a "
                "std::shared_ptr<const T> to one that cannot be copied");
  static_assert(std::copy_constructible<Key>, "troupe: cache: the key is copied");
  using state = kit::cache_state<Key, Value, Hash>;

 public:
  // `load` makes the value of a key: it takes a const Key& and returns the value, a task of it, or
  // another awaitable. A task may keep the reference: the key outlives it. If Value is a
  // std::optional<T>, an empty one is also cached, for as long as any other value.
  template <class Load>
  requires std::invocable<Load&, const Key&> cache(cache_options options, Load load)
      : state_(std::make_shared<state>(options, [load = std::move(load)](const Key& key) mutable {
          return kit::as_made_task<Value>(load, key);
        })) {}

  // The value of the key, which is loaded if the cache does not have it: co_await it, optionally
  // with timeout() or stop(). Errors: timed_out, cancelled, and the exceptions of `load`.
  using getting = tasks::limited_task<kit::cache_call<Key, Value, Hash>>;
  getting get(Key key) const { return getting(std::in_place, state_, std::move(key)); }

  // The value of the key, if it is there. Thread: any.
  std::optional<Value> find(const Key& key) const {
    const std::shared_ptr<const Value> known = state_->find(key);
    return known == nullptr ? std::nullopt : std::optional<Value>(*known);
  }
  // Stores a value. A running load of the key still gives its result to the parties that wait for
  // it, but the result is not stored. Thread: any.
  void put(const Key& key, Value value) const {
    state_->put(key, std::make_shared<const Value>(std::move(value)));
  }
  // Removes the value, for instance after a change of its source: the next get() loads, even if a
  // load is running now. Returns whether there was an entry. Thread: any.
  bool erase(const Key& key) const { return state_->erase(key); }
  // Removes all values. Thread: any.
  void clear() const { state_->clear(); }
  // Frees the memory of expired entries. Thread: any. Cost: it looks at each entry under the mutex.
  void drop_expired() const { state_->drop_expired(); }

  cache_counts counts() const { return state_->counts(); }

 private:
  std::shared_ptr<state> state_;
};

template <class Key, class Value, class Hash>
struct is_sendable<cache<Key, Value, Hash>> : std::true_type {};

}  // namespace troupe
