#include "base/accounts/account.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::base {
namespace {

std::size_t lease_for(std::size_t bytes) noexcept {
  const std::size_t step =
      bytes <= account::lease_bytes ? account::small_lease_bytes : account::lease_bytes;
  return (bytes + step - 1) / step * step;
}

// `kept` beyond `most`: holders that are ending do not count, up to `ending_most` of them.
bool exceeds(std::size_t kept, std::size_t ending, std::size_t most,
             std::size_t ending_most) noexcept {
  return kept > most && kept - std::min({ending, ending_most, kept}) > most;
}

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

}  // namespace

// ---- one holder ----

void account::open(ledger& ledger, peer& peer) noexcept {
  std::lock_guard lock(ledger.mutex_);
  ledger_ = &ledger;
  if (peer_ == &peer) return;
  const bool is_listed = leased_ != 0 || descriptors_ != 0;
  if (is_listed) {
    peer_->holders.remove(*this);
    peer_->bytes -= leased_;
    peer_->descriptors -= descriptors_;
    if (ending_) {
      peer_->ending -= leased_;
      peer_->ending_descriptors -= descriptors_;
      peer.ending += leased_;
      peer.ending_descriptors += descriptors_;
    }
    peer.bytes += leased_;
    peer.descriptors += descriptors_;
    peer.holders.push_back(*this);
  }
  peer_ = &peer;
  TROUPE_INVARIANT(ledger.counts_ending(peer), "A3");
  if (is_listed) ledger.keep_limits(peer);
}

void account::close() noexcept {
  if (peer_ == nullptr) return;
  if (leased_ != 0 || descriptors_ != 0) change_lease(0, 0);
  peer_ = nullptr;
}

void account::change_lease(std::size_t bytes, std::size_t descriptors) noexcept {
  if (peer_ == nullptr) return;
  const std::size_t lease = lease_for(bytes);
  std::lock_guard lock(ledger_->mutex_);
  const bool was_listed = leased_ != 0 || descriptors_ != 0;
  const bool is_listed = lease != 0 || descriptors != 0;
  // Unsigned differences: a negative one wraps around, and the sum is right again.
  const std::size_t more = lease - leased_, more_descriptors = descriptors - descriptors_;
  const bool grows = lease > leased_ || descriptors > descriptors_;
  ledger_->bytes_ += more;
  peer_->bytes += more;
  ledger_->descriptors_ += more_descriptors;
  peer_->descriptors += more_descriptors;
  if (ending_) {
    ledger_->ending_ += more;
    peer_->ending += more;
    ledger_->ending_descriptors_ += more_descriptors;
    peer_->ending_descriptors += more_descriptors;
  }
  leased_ = lease;
  descriptors_ = descriptors;
  TROUPE_INVARIANT(ledger_->counts_ending(*peer_), "A3");
  if (was_listed && !is_listed) {
    peer_->holders.remove(*this);
    ending_ = false;
  } else if (!was_listed && is_listed) {
    peer_->holders.push_back(*this);
  }
  if (grows) ledger_->keep_limits(*peer_);
}

void account::stay() noexcept {
  if (peer_ == nullptr) return;
  std::lock_guard lock(ledger_->mutex_);
  if (!std::exchange(ending_, false)) return;
  ledger_->ending_ -= leased_;
  peer_->ending -= leased_;
  ledger_->ending_descriptors_ -= descriptors_;
  peer_->ending_descriptors -= descriptors_;
  TROUPE_INVARIANT(ledger_->counts_ending(*peer_), "A3");
}

bool account::is_ending() const noexcept {
  if (peer_ == nullptr) return false;
  std::lock_guard lock(ledger_->mutex_);
  return ending_;
}

std::size_t account::room() const noexcept {
  if (peer_ == nullptr) return no_limit;
  std::lock_guard lock(ledger_->mutex_);
  return ledger_->room_of(*peer_);
}

bool account::has_spare(std::size_t bytes) const noexcept {
  if (peer_ == nullptr) return true;
  const ledger& book = *ledger_;
  std::lock_guard lock(book.mutex_);
  return book.has_spare(*peer_, bytes);
}

// ---- all holders ----

ledger::ledger(const limits& most) noexcept : most_(most) {}

ledger::~ledger() { TROUPE_REQUIRE(bytes_ == 0 && descriptors_ == 0, "A1"); }

ledger::peer& ledger::join(std::string_view name) {
  std::lock_guard lock(mutex_);
  const auto found = peers_.try_emplace(std::string(name)).first;
  peer& joined = found->second;
  joined.name = &found->first;
  joined.has_share = !name.empty();
  ++joined.uses;
  return joined;
}

void ledger::leave(peer& peer) noexcept {
  std::lock_guard lock(mutex_);
  if (--peer.uses != 0) return;
  TROUPE_REQUIRE(peer.holders.empty() && peer.descriptors == 0, "A2");
  peers_.erase(peers_.find(*peer.name));
}

bool ledger::has_room_for_connection(peer& peer, std::size_t connections_max) noexcept {
  if (!peer.has_share) return true;
  if (peer.connections >= connections_max) return false;
  const bool is_used_up = peer.descriptors - peer.ending_descriptors >= most_.peer_descriptors;
  return !is_used_up || end_largest_of(peer, true);
}

bool ledger::connect(peer& peer, std::size_t connections_max) noexcept {
  std::lock_guard lock(mutex_);
  if (!has_room_for_connection(peer, connections_max)) return false;
  ++peer.connections;
  ++peer.descriptors;
  ++descriptors_;
  return true;
}

void ledger::disconnect(peer& peer) noexcept {
  std::lock_guard lock(mutex_);
  --peer.connections;
  --peer.descriptors;
  --descriptors_;
}

bool ledger::move_connection(peer& from, peer& target, std::size_t connections_max) noexcept {
  std::lock_guard lock(mutex_);
  if (!has_room_for_connection(target, connections_max)) return false;
  --from.connections;
  --from.descriptors;
  ++target.connections;
  ++target.descriptors;
  return true;
}

bool ledger::counts_ending(const peer& peer) const noexcept {
  std::size_t of_peer = 0;
  for (const account& holder : peer.holders) of_peer += holder.ending_ ? holder.leased_ : 0;
  return peer.ending == of_peer && peer.ending <= ending_ && ending_ <= bytes_;
}

bool ledger::is_over() const noexcept {
  return exceeds(bytes_, ending_, most_.bytes, ending_bytes_max);
}
bool ledger::is_over(const peer& peer) const noexcept {
  return peer.has_share && exceeds(peer.bytes, peer.ending, most_.peer_bytes,
                                   std::min(most_.peer_bytes, ending_bytes_max));
}

std::size_t ledger::room_of(const peer& peer) const noexcept {
  const std::size_t all = bytes_ - ending_, own = peer.bytes - peer.ending;
  const std::size_t left = all >= most_.bytes ? 0 : most_.bytes - all;
  if (!peer.has_share) return left;
  return std::min(left, own >= most_.peer_bytes ? 0 : most_.peer_bytes - own);
}

bool ledger::has_spare(const peer& client, std::size_t bytes) const noexcept {
  const auto fits = [bytes](std::size_t kept, std::size_t limit) {
    return kept <= limit && bytes <= limit - kept;
  };
  return fits(bytes_, most_.bytes) && (!client.has_share || fits(client.bytes, most_.peer_bytes));
}

// Call it when the peer has got more.
void ledger::keep_limits(peer& peer) noexcept {
  while (is_over(peer) && end_largest_of(peer, false)) {
  }
  while (is_over() && end_largest_of_all(false)) {
  }
  while (peer.has_share && peer.descriptors - peer.ending_descriptors > most_.peer_descriptors &&
         end_largest_of(peer, true)) {
  }
  while (descriptors_ - ending_descriptors_ > most_.descriptors && end_largest_of_all(true)) {
  }
}

// Of two holders of the same size the older in the list ends.
bool ledger::end_largest_of(peer& peer, bool by_descriptors) noexcept {
  account* largest = nullptr;
  const auto size_of = [by_descriptors](const account& account) {
    return by_descriptors ? account.descriptors_ : account.leased_;
  };
  for (account& holder : peer.holders) {
    if (holder.ending_ || size_of(holder) == 0) continue;
    if (largest == nullptr || size_of(holder) > size_of(*largest)) largest = &holder;
  }
  if (largest == nullptr) return false;
  largest->ending_ = true;
  peer.ending += largest->leased_;
  ending_ += largest->leased_;
  peer.ending_descriptors += largest->descriptors_;
  ending_descriptors_ += largest->descriptors_;
  TROUPE_INVARIANT(counts_ending(peer), "A3");
  ++ended_;
  largest->end_account();
  return true;
}

bool ledger::end_largest_of_all(bool by_descriptors) noexcept {
  peer* largest = nullptr;
  std::size_t most = 0;
  for (auto& [name, candidate] : peers_) {
    const std::size_t kept = by_descriptors ? candidate.descriptors - candidate.ending_descriptors
                                            : candidate.bytes - candidate.ending;
    if (kept <= most) continue;
    most = kept;
    largest = &candidate;
  }
  return largest != nullptr && end_largest_of(*largest, by_descriptors);
}

bool ledger::is_full() const noexcept {
  std::lock_guard lock(mutex_);
  return bytes_ - ending_ >= most_.bytes || descriptors_ - ending_descriptors_ >= most_.descriptors;
}

bool ledger::end_largest() noexcept {
  std::lock_guard lock(mutex_);
  return end_largest_of_all(descriptors_ - ending_descriptors_ >= most_.descriptors);
}

ledger::totals ledger::now() const noexcept {
  std::lock_guard lock(mutex_);
  totals all{bytes_, descriptors_, 0, 0, ended_};
  for (const auto& [name, peer] : peers_) {
    if (peer.bytes != 0 || peer.descriptors != 0) ++all.peers;
    if (peer.has_share) all.largest_peer_bytes = std::max(all.largest_peer_bytes, peer.bytes);
  }
  return all;
}

}  // namespace troupe::base
