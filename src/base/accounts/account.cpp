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

void account::open(ledger& in, peer& of) noexcept {
  std::lock_guard lock(in.mutex_);
  in_ = &in;
  if (peer_ == &of) return;
  const bool is_listed = leased_ != 0 || descriptors_ != 0;
  if (is_listed) {
    peer_->holders.remove(*this);
    peer_->bytes -= leased_;
    peer_->descriptors -= descriptors_;
    if (ending_) {
      peer_->ending -= leased_;
      peer_->ending_descriptors -= descriptors_;
      of.ending += leased_;
      of.ending_descriptors += descriptors_;
    }
    of.bytes += leased_;
    of.descriptors += descriptors_;
    of.holders.push_back(*this);
  }
  peer_ = &of;
  if (is_listed) in.keep_limits(of);
}

void account::close() noexcept {
  if (peer_ == nullptr) return;
  if (leased_ != 0 || descriptors_ != 0) change_lease(0, 0);
  peer_ = nullptr;
}

void account::change_lease(std::size_t bytes, std::size_t descriptors) noexcept {
  if (peer_ == nullptr) return;
  const std::size_t lease = lease_for(bytes);
  std::lock_guard lock(in_->mutex_);
  const bool was_listed = leased_ != 0 || descriptors_ != 0;
  const bool is_listed = lease != 0 || descriptors != 0;
  // Unsigned differences: a negative one wraps around, and the sum is right again.
  const std::size_t more = lease - leased_, more_descriptors = descriptors - descriptors_;
  const bool grows = lease > leased_ || descriptors > descriptors_;
  in_->bytes_ += more;
  peer_->bytes += more;
  in_->descriptors_ += more_descriptors;
  peer_->descriptors += more_descriptors;
  if (ending_) {
    in_->ending_ += more;
    peer_->ending += more;
    in_->ending_descriptors_ += more_descriptors;
    peer_->ending_descriptors += more_descriptors;
  }
  leased_ = lease;
  descriptors_ = descriptors;
  if (was_listed && !is_listed) {
    peer_->holders.remove(*this);
    ending_ = false;
  } else if (!was_listed && is_listed) {
    peer_->holders.push_back(*this);
  }
  if (grows) in_->keep_limits(*peer_);
}

void account::stay() noexcept {
  if (peer_ == nullptr) return;
  std::lock_guard lock(in_->mutex_);
  if (!std::exchange(ending_, false)) return;
  in_->ending_ -= leased_;
  peer_->ending -= leased_;
  in_->ending_descriptors_ -= descriptors_;
  peer_->ending_descriptors -= descriptors_;
}

bool account::is_ending() const noexcept {
  if (peer_ == nullptr) return false;
  std::lock_guard lock(in_->mutex_);
  return ending_;
}

std::size_t account::room() const noexcept {
  if (peer_ == nullptr) return no_limit;
  std::lock_guard lock(in_->mutex_);
  return in_->room_of(*peer_);
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

void ledger::leave(peer& of) noexcept {
  std::lock_guard lock(mutex_);
  if (--of.uses != 0) return;
  TROUPE_REQUIRE(of.holders.empty() && of.descriptors == 0, "A2");
  peers_.erase(peers_.find(*of.name));
}

bool ledger::has_room_for_connection(peer& of, std::size_t connections_max) noexcept {
  if (!of.has_share) return true;
  if (of.connections >= connections_max) return false;
  const bool is_used_up = of.descriptors - of.ending_descriptors >= most_.peer_descriptors;
  return !is_used_up || end_largest_of(of, true);
}

bool ledger::connect(peer& of, std::size_t connections_max) noexcept {
  std::lock_guard lock(mutex_);
  if (!has_room_for_connection(of, connections_max)) return false;
  ++of.connections;
  ++of.descriptors;
  ++descriptors_;
  return true;
}

void ledger::disconnect(peer& of) noexcept {
  std::lock_guard lock(mutex_);
  --of.connections;
  --of.descriptors;
  --descriptors_;
}

bool ledger::move_connection(peer& from, peer& to, std::size_t connections_max) noexcept {
  std::lock_guard lock(mutex_);
  if (!has_room_for_connection(to, connections_max)) return false;
  --from.connections;
  --from.descriptors;
  ++to.connections;
  ++to.descriptors;
  return true;
}

bool ledger::is_over() const noexcept {
  return exceeds(bytes_, ending_, most_.bytes, ending_bytes_max);
}
bool ledger::is_over(const peer& of) const noexcept {
  return of.has_share && exceeds(of.bytes, of.ending, most_.peer_bytes,
                                 std::min(most_.peer_bytes, ending_bytes_max));
}

std::size_t ledger::room_of(const peer& of) const noexcept {
  const std::size_t all = bytes_ - ending_, own = of.bytes - of.ending;
  const std::size_t left = all >= most_.bytes ? 0 : most_.bytes - all;
  if (!of.has_share) return left;
  return std::min(left, own >= most_.peer_bytes ? 0 : most_.peer_bytes - own);
}

// Call it when the peer has got more.
void ledger::keep_limits(peer& of) noexcept {
  while (is_over(of) && end_largest_of(of, false)) {
  }
  while (is_over() && end_largest_of_all(false)) {
  }
  while (of.has_share && of.descriptors - of.ending_descriptors > most_.peer_descriptors &&
         end_largest_of(of, true)) {
  }
  while (descriptors_ - ending_descriptors_ > most_.descriptors && end_largest_of_all(true)) {
  }
}

// Of two holders of the same size the one that has been in the list for longer ends.
bool ledger::end_largest_of(peer& of, bool by_descriptors) noexcept {
  account* largest = nullptr;
  const auto size_of = [by_descriptors](const account& one) {
    return by_descriptors ? one.descriptors_ : one.leased_;
  };
  for (account& holder : of.holders) {
    if (holder.ending_ || size_of(holder) == 0) continue;
    if (largest == nullptr || size_of(holder) > size_of(*largest)) largest = &holder;
  }
  if (largest == nullptr) return false;
  largest->ending_ = true;
  of.ending += largest->leased_;
  ending_ += largest->leased_;
  of.ending_descriptors += largest->descriptors_;
  ending_descriptors_ += largest->descriptors_;
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
  for (const auto& [name, one] : peers_) {
    if (one.bytes != 0 || one.descriptors != 0) ++all.peers;
    if (one.has_share) all.largest_peer_bytes = std::max(all.largest_peer_bytes, one.bytes);
  }
  return all;
}

}  // namespace troupe::base
