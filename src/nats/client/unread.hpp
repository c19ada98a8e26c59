// unread: the bytes of messages that wait to be read, as accounts in a ledger
// (docs/protocols/accounts.md). A holder is a subscription; the peer is its connection.
//
// Past a limit the largest subscription of the largest connection loses its messages at once, or
// ends, on the thread whose subscription has just kept more.
//
// Threads: any. Order of mutexes: an account's, then the ledger's, then the book's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/accounts/account.hpp"

namespace troupe::nats {

struct subscription_state;

constexpr std::size_t unread_bytes_least = 64 * 1024;

// The ledger of the connections that share a limit.
struct unread_book {
  unread_book(std::size_t bytes, std::size_t per_connection)
      : all({.bytes = bytes, .peer_bytes = per_connection}) {}

  // Takes those that were asked to end since: a list by subscription_state::next_to_end.
  std::shared_ptr<subscription_state> take_ended() noexcept {
    // order: relaxed  a first look; the list is read under the mutex, by one that has kept more
    if (!has_ended.load(std::memory_order_relaxed)) [[likely]]
      return nullptr;
    const std::lock_guard lock(mutex);
    has_ended.store(false, std::memory_order_relaxed);  // order: relaxed  as above
    return std::exchange(ended, nullptr);
  }

  base::ledger all;
  std::atomic<bool> has_ended{false};
  std::atomic<std::int64_t> trimmed_ns{0};
  std::mutex mutex;
  std::shared_ptr<subscription_state> ended;
};

// Lets those that were asked to end lose their messages, or end. Call it without a mutex.
void end_largest(unread_book& book);

// One connection in its book.
class unread_peer {
 public:
  explicit unread_peer(std::shared_ptr<unread_book> book)
      : book_(std::move(book)), peer_(book_->all.join(name_of(this))) {}
  unread_peer(const unread_peer&) = delete;
  unread_peer& operator=(const unread_peer&) = delete;
  ~unread_peer() { book_->all.leave(peer_); }
  unread_book& book() const noexcept { return *book_; }
  base::ledger::peer& peer() const noexcept { return peer_; }

 private:
  static std::string name_of(const void* peer) {
    return std::to_string(reinterpret_cast<std::uintptr_t>(peer));
  }
  const std::shared_ptr<unread_book> book_;
  base::ledger::peer& peer_;
};

// Of one subscription.
class unread_account final : public base::account {
 public:
  // The memory of a message besides its bytes, about.
  static constexpr std::size_t message_overhead = 256;

  unread_account(std::shared_ptr<unread_peer> connection, subscription_state& owner) noexcept
      : owner_(owner), connection_(std::move(connection)) {
    open(connection_->book().all, connection_->peer());
  }
  ~unread_account() override { close(); }

  void add(std::size_t bytes) noexcept {
    kept_.fetch_add(bytes + message_overhead,
                    std::memory_order_relaxed);  // order: relaxed  as below
    count();
  }
  void take(std::size_t bytes) noexcept {
    kept_.fetch_sub(bytes + message_overhead,
                    std::memory_order_relaxed);  // order: relaxed  as below
    count();
  }
  // It was asked to end, has lost its messages, and continues.
  void go_on() noexcept {
    const std::lock_guard lock(mutex_);
    stay();
  }
  unread_book& book() const noexcept { return connection_->book(); }

 private:
  void end_account() noexcept override;
  void count() noexcept {
    // order: relaxed  a sum that the ledger's mutex makes exact; messages pass through the channel
    const std::size_t kept = kept_.load(std::memory_order_relaxed);
    // order: relaxed  as above
    const std::size_t most = leased_now_.load(std::memory_order_relaxed);
    if (kept <= most && most - kept <= slack_bytes) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    hold(kept_.load(std::memory_order_relaxed));             // order: relaxed  as above
    leased_now_.store(leased(), std::memory_order_relaxed);  // order: relaxed  as above
  }

  subscription_state& owner_;
  const std::shared_ptr<unread_peer> connection_;
  std::mutex mutex_;
  std::atomic<std::size_t> kept_{0}, leased_now_{0};
};

}  // namespace troupe::nats
