// The same as sources.hpp, of locks, resources and what the kit lends.
#pragma once

#include "given_up/sources.hpp"

namespace troupe::test {

// Each number is set when the reader has taken the one before, since a watch keeps the newest only.
class watch_source final : public source {
 public:
  void start(int count) override {
    from_.emplace(numbers_.subscribe());
    spawn(fill(numbers_, taken_, count));
  }
  task<std::optional<int>> next() override {
    const std::optional<int> number = co_await from_->changed();
    if (number) taken_->add(1);
    co_return number;
  }

 private:
  static task<> fill(watch<int> to, std::shared_ptr<semaphore> taken, int count) {
    for (int i = 0; i < count; ++i) {
      auto permit = co_await taken->acquire();
      permit.forget();
      to.set(i);
    }
    auto permit = co_await taken->acquire();
    permit.forget();
    to.close();
  }
  const watch<int> numbers_ = watch<int>(-1);
  const std::shared_ptr<semaphore> taken_ = std::make_shared<semaphore>(1);
  std::optional<watch<int>::reader> from_;
};

// A number is a visit of what one party at a time may use; other parties use it meanwhile, and the
// last of them ends only if all have got it, and none has kept it.
template <class Guarded>
class lock_source final : public source {
 public:
  void start(int count) override {
    count_ = count;
    for (int i = 0; i < 2; ++i) spawn(use(lent_, count));
  }
  task<std::optional<int>> next() override {
    if (visits_ == count_) co_return std::nullopt;
    auto held = co_await lent_->get();
    co_return visits_++;
  }

 private:
  static task<> use(std::shared_ptr<Guarded> lent, int count) {
    for (int i = 0; i < count; ++i) {
      auto held = co_await lent->get();
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  const std::shared_ptr<Guarded> lent_ = std::make_shared<Guarded>();
  int count_ = 0, visits_ = 0;
};

struct of_mutex {
  auto get() { return lock.lock(); }
  mutex lock;
};
struct of_shared_mutex {
  auto get() { return lock.lock(); }
  shared_mutex lock;
};
// Readers and writers in turns.
struct of_shared_lock {
  task<std::variant<shared_mutex::guard, shared_mutex::shared_guard>> get() {
    if (++asked % 2 == 0) co_return co_await lock.lock();
    co_return co_await lock.lock_shared();
  }
  shared_mutex lock;
  std::atomic<int> asked = 0;
};
struct of_pool {
  auto get() { return one.borrow().as_task(); }
  pool<int> one = pool<int>({.max = 1}, [] { return 1; });
};
// A number is a token.
class token_source final : public source {
 public:
  void start(int count) override {
    limit_.emplace(rate_limit{.tokens = 1'000'000, .per = std::chrono::seconds(1), .burst = 1});
    count_ = count;
  }
  task<std::optional<int>> next() override {
    if (given_ == count_) co_return std::nullopt;
    co_await limit_->acquire();
    co_return given_++;
  }

 private:
  std::optional<rate_limiter> limit_;
  int count_ = 0, given_ = 0;
};

// What the cache loads for one party serves the next one too.
class cache_source final : public source {
 public:
  void start(int count) override { count_ = count; }
  task<std::optional<int>> next() override {
    if (given_ == count_) co_return std::nullopt;
    auto gets = numbers_.get(given_);
    const int number = co_await std::move(gets);
    co_return number == given_ ? given_++ : -1;
  }

 private:
  static task<int> load(const int& key) {
    const int number = key;
    const bool waits = pauses(number);
    if (waits) co_await yield();
    co_return number;
  }
  cache<int, int> numbers_{{}, &load};
  int count_ = 0, given_ = 0;
};

inline std::vector<named_source> kit_sources() {
  return {{"watch", &make_source<watch_source>},
          {"mutex", &make_source<lock_source<of_mutex>>},
          {"shared_mutex", &make_source<lock_source<of_shared_mutex>>},
          {"shared_lock", &make_source<lock_source<of_shared_lock>>},
          {"pool", &make_source<lock_source<of_pool>>},
          {"tokens", &make_source<token_source>},
          {"cache", &make_source<cache_source>}};
}

}  // namespace troupe::test
