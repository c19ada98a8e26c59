// kept_answer: what a client keeps of one answer until the program reads it, as an account in the
// client's ledger (docs/protocols/accounts.md). The peer is the origin.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <utility>

#include "base/accounts/account.hpp"

namespace troupe::http {

// Thread: one at a time; end_account() on any thread.
class kept_answer final : public base::account {
 public:
  // `told`: called, if not null, when the answer is to end. The ledger's mutex is held then.
  using wake_function = void (*)(void* context) noexcept;
  explicit kept_answer(wake_function told = nullptr, void* context = nullptr) noexcept
      : told_(told), context_(context) {}
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
  // Whether the answer was asked to end, since the client keeps too much.
  // order: acquire  pairs with end_account/release: a wake-up that was seen says what it is for
  bool was_ended() const noexcept { return is_ended_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t uncounted_bytes = 4 * 1024;

  void end_account() noexcept override {
    is_ended_.store(true, std::memory_order_release);  // order: release  as above
    if (told_ != nullptr) told_(context_);
  }

  base::ledger* ledger_ = nullptr;
  peer* peer_ = nullptr;
  const wake_function told_;
  void* const context_;
  std::atomic<bool> is_ended_{false};
};

}  // namespace troupe::http
