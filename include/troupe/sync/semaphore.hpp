// semaphore: a number of permits that parties take and give back.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/sync/permits.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe {

// Limits how many parties do something at a time: how many requests are in flight, how much memory
// is in use.
//
// Thread: any. Parties get their permits in the order in which they arrived: a party that asks for
// many is not overtaken by parties that ask for few. Cost: about 10 ns when there are enough.
// Errors: usage_error for more permits than max_permits. Lifetime: the semaphore must live as long
// as its permits and waits.
//
// Example:
//     troupe::task<> fetch(std::shared_ptr<troupe::semaphore> at_most_two) {
//       auto permit = co_await at_most_two->acquire();
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));
//     }
//     int main() {
//       troupe::runtime rt;
//       auto two = std::make_shared<troupe::semaphore>(2);
//       for (int i = 0; i < 6; ++i) rt.spawn(fetch(two));
//       rt.run();
//     }
class semaphore {
 public:
  static constexpr std::uint64_t max_permits = sync::permits::most;

  // Permits that were taken, given back when this object is destroyed, on any thread.
  class [[nodiscard]] permit {
   public:
    permit() = default;
    permit(semaphore& owner, std::uint64_t count) noexcept : semaphore_(&owner), count_(count) {}
    permit(permit&& other) noexcept
        : semaphore_(std::exchange(other.semaphore_, nullptr)), count_(other.count_) {}
    permit& operator=(permit&& other) noexcept {
      std::swap(semaphore_, other.semaphore_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~permit() { release(); }

    std::uint64_t count() const noexcept { return semaphore_ == nullptr ? 0 : count_; }
    // Returns the permits early.
    void release() noexcept {
      if (semaphore* const owner = std::exchange(semaphore_, nullptr)) owner->permits_.give(count_);
    }
    // Keeps them for good: the semaphore has that many fewer from now on.
    void forget() noexcept { semaphore_ = nullptr; }

   private:
    semaphore* semaphore_ = nullptr;
    std::uint64_t count_ = 0;
  };

  explicit semaphore(std::uint64_t permits) : permits_(checked(permits)) {}

  struct acquiring : sync::permit_waiter {
    static constexpr const char* name = "permits of a semaphore";
    acquiring(semaphore& owner, std::uint64_t count) noexcept : from(&owner) { wants = count; }
    acquiring(acquiring&& other) noexcept : from(other.from) { wants = other.wants; }
    bool try_now() noexcept { return from->permits_.try_take(wants); }
    bool start() noexcept { return from->permits_.take_or_wait(*this); }
    bool withdraw() noexcept { return from->permits_.withdraw(*this); }
    bool put_back() noexcept {
      from->permits_.give(wants);
      return true;
    }
    permit finish() noexcept { return permit(*from, wants); }
    semaphore* from;
  };
  // Waits for permits: co_await it, optionally with timeout() or stop(), or block in get() on a
  // plain thread.
  sync::awaiting<acquiring> acquire(std::uint64_t count = 1) {
    return sync::awaiting<acquiring>(std::in_place, *this, checked(count));
  }
  // Does not wait. Returns nothing if there are not enough, or other parties wait.
  std::optional<permit> try_acquire(std::uint64_t count = 1) {
    std::optional<permit> got;
    if (permits_.try_take(checked(count))) got.emplace(*this, count);
    return got;
  }
  // Adds permits.
  void add(std::uint64_t count) { permits_.give(checked(count)); }
  // How many are free; only a hint.
  std::uint64_t available() const noexcept { return permits_.free(); }

 private:
  static std::uint64_t checked(std::uint64_t count) {
    if (count > max_permits)
      throw usage_error(
          "troupe: semaphore: more permits than semaphore::max_permits; use at most that many");
    return count;
  }
  sync::permits permits_;
};

}  // namespace troupe
