// kept_answer: the bytes that a client keeps of one answer until the program reads them, as an
// account in the client's ledger (docs/protocols/accounts.md). The peer is the origin.
// kept_holders: the parts of a client whose kept bytes any thread frees when they were asked to
// end.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/accounts/account.hpp"
#include "troupe/base/intrusive_list.hpp"

namespace troupe::http {

// One part: a connection of HTTP/2 with its answers, or a WebSocket.
class kept_holder {
 public:
  kept_holder() noexcept = default;
  kept_holder(const kept_holder&) = delete;
  kept_holder& operator=(const kept_holder&) = delete;

 protected:
  virtual ~kept_holder() = default;

 private:
  friend class kept_holders;
  friend class kept_answer;
  // Frees the kept bytes that were asked to end. Caller: any thread, without the mutex of an answer
  // or connection.
  virtual void free_ended() noexcept = 0;
  // An answer of it is to end. Caller: any thread, with the ledger's mutex.
  virtual void note_end() noexcept = 0;
  base::list_link<kept_holder> link_;
};

// The parts of one client. Thread: any. Order of mutexes: this one, then a part's, then the
// ledger's.
class kept_holders {
 public:
  void add(kept_holder& holder) noexcept {
    const std::lock_guard lock(mutex_);
    all_.push_back(holder);
  }
  void remove(kept_holder& holder) noexcept {
    const std::lock_guard lock(mutex_);
    all_.remove(holder);
  }
  // One was asked to end. Called with the ledger's mutex.
  // order: release  after the holder's own flag; pairs with free_ended
  void note_end() noexcept { has_ended_.store(true, std::memory_order_release); }
  // Frees the bytes of those that were asked to end. Called by a task that has just kept more.
  void free_ended() noexcept {
    // order: relaxed, acquire  a first look; pairs with note_end
    if (!has_ended_.load(std::memory_order_relaxed) ||
        !has_ended_.exchange(false, std::memory_order_acquire)) [[likely]]
      return;
    const std::lock_guard lock(mutex_);
    for (kept_holder& holder : all_) holder.free_ended();
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> has_ended_{false};
  base::intrusive_list<kept_holder, &kept_holder::link_> all_;
};

// Thread: one at a time; end_account() on any thread.
class kept_answer final : public base::account {
 public:
  // `holder`: if not null, note_end() of it is called when the answer is to end.
  explicit kept_answer(kept_holder* holder = nullptr) noexcept : holder_(holder) {}
  ~kept_answer() override { end(); }

  // This much is kept now. An answer that never keeps more than `uncounted_bytes` takes no lock.
  // `origin` gives the name of the peer.
  template <std::invocable Origin>
  void count(base::ledger& ledger, Origin origin, std::size_t bytes) {
    if (peer_ == nullptr) {
      if (bytes <= uncounted_bytes) return;
      peer_ = &ledger.join(origin());
      ledger_ = &ledger;
      open(ledger, *peer_);
    }
    hold(bytes);
  }
  // Only this much of it is kept now.
  void shrink(std::size_t bytes) noexcept {
    if (peer_ != nullptr) hold(bytes);
  }
  // Nothing is kept any more.
  void end() noexcept {
    if (peer_ == nullptr) return;
    close();
    ledger_->leave(*std::exchange(peer_, nullptr));
  }
  bool is_counted() const noexcept { return peer_ != nullptr; }
  // Whether the answer was asked to end, since the client keeps too much.
  // order: acquire  pairs with end_account/release: a wake-up that was seen shows its reason
  bool was_ended() const noexcept { return is_ended_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t uncounted_bytes = 4 * 1024;

  void end_account() noexcept override {
    is_ended_.store(true, std::memory_order_release);  // order: release  as above
    if (holder_ != nullptr) holder_->note_end();
  }

  base::ledger* ledger_ = nullptr;
  peer* peer_ = nullptr;
  kept_holder* const holder_;
  std::atomic<bool> is_ended_{false};
};

}  // namespace troupe::http
