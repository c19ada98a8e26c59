// How threads share the parts of a loop: docs/protocols/fork_join.md, "Loops".
#include "troupe/jobs/parts.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_name.hpp"
#include "jobs/pool/job_pool.hpp"
#include "troupe/base/error.hpp"

namespace troupe::jobs {

constexpr std::int64_t look_ns = 40'000;  // a look costs about 0.1 µs

// Consecutive parts; any number of threads take the next one.
class alignas(base::line_bytes) stretch {
 public:
  // Before any other thread can see it.
  void begin(std::size_t first, std::size_t last) noexcept {
    next_.store(first, std::memory_order_relaxed);  // order: relaxed  the fork publishes it
    end_ = last;
  }
  // False when none is left.
  bool take(std::size_t& part) noexcept {
    // order: relaxed (both)  decides which thread takes which part; the effects of a part are
    // published when its taker ends
    if (next_.load(std::memory_order_relaxed) >= end_) return false;
    part = next_.fetch_add(1, std::memory_order_relaxed);
    return part < end_;
  }

 private:
  std::atomic<std::size_t> next_{0};
  std::size_t end_ = 0;
};

// The parts of one loop: a stretch for each thread that may take part.
class shared_parts {
 public:
  shared_parts(const part_body& body, std::size_t count, std::size_t threads)
      : body_(body), stretches_(std::make_unique<stretch[]>(threads)), threads_(threads) {
    const auto begin_of = [=](std::size_t i) {
      return count / threads * i + std::min(i, count % threads);
    };
    for (std::size_t i = 0; i < threads; ++i) stretches_[i].begin(begin_of(i), begin_of(i + 1));
  }

  // Runs parts, this thread's stretch first. True when some may be left and a look at the clock is
  // due.
  bool run_some(fork_frame& self) {
    fork_worker_state& on = *self.worker;
    const std::size_t mine = base::worker_number;
    std::size_t part = 0;
    for (std::size_t i = 0; i != threads_; ++i) {
      while (stretches_[(mine + i) % threads_].take(part)) {
        body_.run_part(part);
        // order: relaxed  a hint, as at a fork
        const bool look = --on.forks_left < 0 ||
                          on.tree->failures.load(std::memory_order_relaxed) != 0 ||
                          on.is_look_due(look_ns);
        if (!look) continue;
        on.forks_left = 0;
        return true;
      }
    }
    return false;
  }

 private:
  const part_body& body_;
  const std::unique_ptr<stretch[]> stretches_;
  const std::size_t threads_;
};

// Awaited by a work: its result is computed with the work's fork frame.
class takes_some {
 public:
  explicit takes_some(shared_parts& all) noexcept : parts_(all) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    self_ = &awaiting.promise();
    return false;
  }
  bool await_resume() const { return parts_.run_some(*self_); }

 private:
  shared_parts& parts_;
  fork_frame* self_ = nullptr;
};

// Returns the number of threads that may take part. Makes the next fork call them, since the loop's
// first part may be long.
class asks_for_threads {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    fork_worker_state& on = *awaiting.promise().worker;
    threads_ = on.tree->threads;
    if (threads_ > 1) on.look_at_next_forks(1);
    return false;
  }
  std::size_t await_resume() const noexcept { return threads_; }

 private:
  std::size_t threads_ = 1;
};

// A fork whose works go into the deque for loops.
class fork_of_takers {
 public:
  explicit fork_of_takers(std::span<work<>> works) noexcept : works_(works) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    for (auto& each : works_) work_access::begin(each);
    const auto part = [parts = works_.data()](std::uint32_t i) -> fork_frame& {
      return work_access::fork_frame_of(parts[i]);
    };
    return join_.start<&fork_deques::loops>(awaiting.promise(),
                                            static_cast<std::uint32_t>(works_.size()), part);
  }
  void await_resume() { join_.check(); }
  fork_awaiter<fork_of_takers> operator co_await() && noexcept { return {*this}; }

 private:
  const std::span<work<>> works_;
  fork_join join_;
};

template <>
inline constexpr bool is_fork<takes_some> = true;
template <>
inline constexpr bool is_fork<fork_of_takers> = true;
template <>
inline constexpr bool is_fork<asks_for_threads> = true;

namespace {

work<> looks() { co_return; }

// Each round awaits a fork, since a fork looks at the clock, at errors and at stops, and may rest.
work<> take_parts(shared_parts& all) {
  takes_some next(all);
  while (co_await next) co_await looks();
}

}  // namespace

work<> run_parts(const part_body& body, std::size_t count) {
  asks_for_threads place;
  const std::size_t most = co_await place;
  const std::size_t threads = std::min(count, most);
  shared_parts all(body, count, threads);
  std::vector<work<>> takers;
  takers.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) takers.push_back(take_parts(all));
  fork_of_takers all_of_them(takers);
  co_await std::move(all_of_them);
}

void refuse_negative_first(const char* loop) {
  throw usage_error(std::string("troupe: ") + loop +
                    ": the first number is negative, but numbers are unsigned, as one end is; make "
                    "both ends signed");
}

std::size_t grain_by_workers(std::size_t count) noexcept {
  constexpr std::size_t parts_a_worker = 64;
  const job_pool* const pool = job_pool::current();
  const std::size_t parts = parts_a_worker * (pool == nullptr ? 1 : pool->workers());
  return std::max<std::size_t>((count + parts - 1) / parts, 1);
}

}  // namespace troupe::jobs
