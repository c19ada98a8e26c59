// account: the bytes and descriptors that are kept for one holder, such as a connection or a
// stream. The ledger of a server adds up the accounts of all holders, and of the holders of a peer.
//
// A holder sets how much it keeps now, and the account leases that much from its peer and from the
// ledger: in steps of 1 KiB up to 64 KiB, and in steps of 64 KiB beyond. While the lease covers
// the kept bytes, hold() compares two numbers and takes no lock: a small request costs nothing.
//
// Past a limit the largest holder of a peer is asked to end: of the peer whose share is used up, or
// of the largest peer when all of the ledger is. The holder that asks for more always gets it. A
// newcomer is therefore never turned away for the memory that others keep, and the kept memory
// exceeds a limit by at most the leases of the holders that are just ending.
//
// Threads: an account belongs to one task; the ledger's mutex guards all the rest.
// Invariants
//   A1  the bytes of a peer are the sum of the leases of its accounts, and the ledger's bytes are
//       the sum of its peers; the same holds for descriptors, which a peer's connections add to.
//   A2  an account is in its peer's list while its lease is not empty, so that any thread that
//       holds the mutex may ask it to end.
//   A3  the bytes of a holder that was asked to end are also counted in `ending`. They count as
//       free, unless so many holders do not end that the excess reaches a second limit.
//
// Rejected: atomic sums without a mutex; the search for the largest holder needs the lists anyway,
// and a lease changes rarely. A limit that refuses: then whoever fills the memory first keeps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "troupe/base/intrusive_list.hpp"

namespace troupe::base {

class ledger;

class account {
 public:
  static constexpr std::size_t lease_bytes = 64 * 1024;  // beyond its first lease_bytes
  static constexpr std::size_t small_lease_bytes = 1024;
  static constexpr std::size_t slack_bytes = 16 * 1024;  // a lease that is larger by this may stay

  struct peer;

  account() noexcept = default;
  account(const account&) = delete;
  account& operator=(const account&) = delete;

  // The account belongs to `peer`, whose ledger must outlive it. If it belonged to another peer,
  // its lease moves with it.
  void open(ledger& ledger, peer& peer) noexcept;
  // Returns the lease. Call it before the holder is destroyed.
  void close() noexcept;

  // The holder keeps this much now. Its end_account() may be called within this call.
  void hold(std::size_t bytes, std::size_t descriptors = 0) noexcept {
    const bool is_covered = bytes <= leased_ && leased_ - bytes <= slack_bytes;
    if (is_covered && descriptors == descriptors_) [[likely]]
      return;
    change_lease(bytes, descriptors);
  }
  // The holder was asked to end, has given up as much as it could, and continues. If a limit is
  // still reached, whoever gets more asks again: a holder that asked itself would be asked again
  // and again while the others that it waits for have no turn.
  void stay() noexcept;
  // How many bytes the holder may keep beyond its lease until a limit is reached.
  std::size_t room() const noexcept;

  // Whether so much more fits, even if no holder that was asked to end does so: for memory that the
  // holder can do without.
  bool has_spare(std::size_t bytes) const noexcept;

  // Whether the holder was asked to end.
  bool is_ending() const noexcept;

  peer* of() const noexcept { return peer_; }
  std::size_t leased() const noexcept { return leased_; }

 protected:
  virtual ~account() = default;
  // The holder is to end, or to give up much of its memory, soon. Caller: any thread, with the
  // ledger's mutex.
  virtual void end_account() noexcept = 0;

 private:
  friend class ledger;
  void change_lease(std::size_t bytes, std::size_t descriptors) noexcept;

  ledger* ledger_ = nullptr;
  peer* peer_ = nullptr;
  std::size_t leased_ = 0, descriptors_ = 0;  // written by the holder's task under the mutex
  bool ending_ = false;                       // guarded by the mutex
  list_link<account> link_;
};

class ledger {
 public:
  // The limits of bytes and of descriptors: of all peers together, and of one peer.
  struct limits {
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
    std::size_t peer_bytes = std::numeric_limits<std::size_t>::max();
    std::size_t descriptors = std::numeric_limits<std::size_t>::max();
    std::size_t peer_descriptors = std::numeric_limits<std::size_t>::max();
  };
  using peer = account::peer;

  explicit ledger(const limits& most) noexcept;
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  // The peer of that name, until a leave() for each join(). "": the holders that have no share,
  // which only the limits of the ledger hold for. Throws std::bad_alloc.
  peer& join(std::string_view name);
  void leave(peer& peer) noexcept;
  // A connection of the peer begins, with one descriptor. Returns false, and counts nothing, when
  // the peer already has `connections_max`, or its share of descriptors without a holder that could
  // give one up.
  bool connect(peer& peer, std::size_t connections_max) noexcept;
  void disconnect(peer& peer) noexcept;
  // A connection that counts for `from` counts for `target` from now on. Returns false, and changes
  // nothing, when `target` has no room for it, as connect() does.
  bool move_connection(peer& from, peer& target, std::size_t connections_max) noexcept;

  // Whether the limits are reached, holders that are ending aside.
  bool is_full() const noexcept;
  // Asks the largest holder of the largest peer to end. Returns false when there is none.
  bool end_largest() noexcept;

  struct totals {
    std::size_t bytes = 0, descriptors = 0;
    std::size_t peers = 0;               // that keep something, those without a share as one
    std::size_t largest_peer_bytes = 0;  // of those with a share
    std::uint64_t ended = 0;             // holders that were asked to end so far
  };
  totals now() const noexcept;
  const limits& most() const noexcept { return most_; }

 private:
  friend class account;
  // Holders that were asked to end may keep so much on top of a limit; then others also end.
  static constexpr std::size_t ending_bytes_max = 16 * 1024 * 1024;
  // Whether the bytes in `ending` are a part of those that are kept (A3).
  bool counts_ending(const peer& peer) const noexcept;
  bool is_over() const noexcept;
  bool is_over(const peer& peer) const noexcept;
  bool has_room_for_connection(peer& peer, std::size_t connections_max) noexcept;
  void keep_limits(peer& peer) noexcept;
  bool end_largest_of(peer& peer, bool by_descriptors) noexcept;
  bool end_largest_of_all(bool by_descriptors) noexcept;
  std::size_t room_of(const peer& peer) const noexcept;
  bool has_spare(const peer& client, std::size_t bytes) const noexcept;

  mutable std::mutex mutex_;
  const limits most_;
  std::size_t bytes_ = 0, ending_ = 0, descriptors_ = 0, ending_descriptors_ = 0;
  std::uint64_t ended_ = 0;
  std::unordered_map<std::string, peer> peers_;
};

struct account::peer {
  std::size_t uses = 0, connections = 0;
  std::size_t bytes = 0, ending = 0;  // in the leases of all accounts; of those that are ending
  std::size_t descriptors = 0, ending_descriptors = 0;
  bool has_share = true;
  const std::string* name = nullptr;
  intrusive_list<account, &account::link_> holders;
};

}  // namespace troupe::base
