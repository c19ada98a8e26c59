#include "io/simulated/simulated_kernel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/simulated/simulated_end.hpp"

namespace troupe::io {
std::uint64_t simulated_kernel::choose_for(end& end, std::uint64_t bound) {
  return simulation_.choose(sched::choice_kind::outcome, bound, &end.choices);
}

std::int64_t simulated_kernel::delay_to(end& end) {
  return static_cast<std::int64_t>(
      simulation_.choose(sched::choice_kind::delay, delay_ns_max, &end.choices));
}

simulated_kernel::end* simulated_kernel::find(int fd) noexcept {
  const auto at = ends_.find(fd);
  return at == ends_.end() ? nullptr : at->second.get();
}

// Returns the lowest free number, as the real system does.
int simulated_kernel::put(end_ptr end) {
  int fd = first_simulated;
  for (const auto& [taken, unused] : ends_) {
    if (taken != fd) break;
    ++fd;
  }
  ends_.emplace(fd, std::move(end));
  return fd;
}

simulated_kernel::end_ptr simulated_kernel::make(int domain) {
  auto created = std::make_shared<end>();
  created->local = domain == AF_INET6 ? endpoint::loopback_v6(0) : endpoint::loopback(0);
  constexpr std::size_t capacities[] = {65'536, 4'096, 100};
  simulation_.begin(created->choices);
  created->capacity = capacities[choose_for(*created, 3)];
  return created;
}

simulated_kernel::end_ptr simulated_kernel::listener_at(const endpoint& to) const {
  for (const auto& [fd, entry] : ends_) {
    if (entry->is == end::state::listening && !entry->is_unix() && accepts(entry->local, to))
      return entry;
  }
  return nullptr;
}

simulated_kernel::end_ptr simulated_kernel::listener_at(const std::string& path) const {
  for (const auto& [fd, entry] : ends_) {
    if (entry->is == end::state::listening && entry->is_unix() && entry->path == path) return entry;
  }
  return nullptr;
}

// Sends news that is on its way for a while, and arrives after everything that was sent there
// before.
void simulated_kernel::send_news(const end_ptr& end, news event, std::string bytes,
                                 end_ptr connection) {
  if (ended_ || end->lost) return;
  const std::int64_t due = simulation_.now_ns() + delay_to(*end);
  end->last_due_ns = std::max(end->last_due_ns, due);
  end->under_way += bytes.size();
  under_way_.push(
      {end->last_due_ns, sent_++, end, event, std::move(bytes), std::move(connection), {}});
}

void simulated_kernel::arrive(arrival& arrival) {
  const end_ptr end = arrival.target.lock();
  if (end == nullptr) {
    // The listener has closed in the meantime: the connection is reset.
    const end_ptr peer =
        arrival.event == news::connection ? arrival.connection->other.lock() : nullptr;
    if (peer != nullptr) send_news(peer, news::reset);
    return;
  }
  if (end->lost && arrival.event != news::timed_out) {
    if (arrival.event == news::bytes) end->under_way -= arrival.bytes.size();
    return;
  }
  switch (arrival.event) {
    case news::bytes:
      end->under_way -= arrival.bytes.size();
      end->take_bytes(arrival.bytes);
      return raise(*end, EPOLLIN);
    case news::connection:
      end->connections.push_back(std::move(arrival.connection));
      return raise(*end, EPOLLIN);
    case news::connected:
      end->end_connecting(end::state::connected);
      return raise(*end, EPOLLOUT);
    case news::refused:
      end->end_connecting(end::state::failed);
      end->error = ECONNREFUSED;
      return raise(*end, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
    case news::finished:
      end->finish();
      return raise(*end, EPOLLIN | EPOLLRDHUP);
    case news::reset:
      end->go();
      end->error = ECONNRESET;
      return raise(*end, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
    case news::timed_out:
      end->go();
      end->error = ETIMEDOUT;
      return raise(*end, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
    case news::room:
      return raise(*end, EPOLLOUT);
    case news::packet:
      end->under_way -= arrival.bytes.size();
      --end->packets_under_way;
      end->packets.push_back(
          {arrival.from, arrival.connection == nullptr ? std::string() : arrival.connection->path,
           std::move(arrival.bytes)});
      return raise(*end, EPOLLIN);
  }
}

void simulated_kernel::raise(end& at, std::uint32_t events) {
  if (at.interests == 0) return;
  if (at.raised == 0) {
    for (auto& [fd, entry] : ends_) {
      if (entry.get() == &at) raised_.push_back(entry);
    }
  }
  at.raised |= events;
}

void simulated_kernel::catch_up() {
  while (!under_way_.empty() && under_way_.top().due_ns <= simulation_.now_ns()) {
    arrival next = under_way_.top();
    under_way_.pop();
    arrive(next);
  }
}

std::optional<std::int64_t> simulated_kernel::next_ns() noexcept {
  const lock_of lock(mutex_);
  if (!raised_.empty()) return simulation_.now_ns();
  if (under_way_.empty()) return std::nullopt;
  return under_way_.top().due_ns;
}

void simulated_kernel::end_simulation() noexcept {
  const lock_of lock(mutex_);
  ended_ = true;
}

int simulated_kernel::make_set() noexcept { return real_set_ = real_kernel().make_set(); }

int simulated_kernel::add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return real_kernel().add(set, fd, events, tag);
  at->tag = tag;
  at->interests = events;
  if (at->level() != 0) raise(*at, at->level());
  return 0;
}

int simulated_kernel::remove(int set, int fd) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return real_kernel().remove(set, fd);
  at->interests = 0;
  return 0;
}

// Reports events in any order. Asks the real system only when nothing simulated has happened.
// Virtual time passes elsewhere.
int simulated_kernel::wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept {
  {
    const lock_of lock(mutex_);
    catch_up();
    int count = 0;
    while (!raised_.empty() && count < most) {
      std::swap(raised_[choose(raised_.size())], raised_.back());
      const end_ptr at = raised_.back().lock();
      raised_.pop_back();
      if (at == nullptr) continue;
      const std::uint32_t now = at->raised & (at->interests | EPOLLERR | EPOLLHUP);
      at->raised = 0;
      if (now == 0) continue;
      events[count].events = now | (at->level() & (EPOLLRDHUP | EPOLLERR | EPOLLHUP));
      events[count++].data.u64 = at->tag;
    }
    if (count != 0 || (timeout_ms != 0 && next_ns())) return count;
  }
  return real_kernel().wait_events(set, events, most, timeout_ms);
}

int simulated_kernel::socket(int domain, int type, int) noexcept {
  const lock_of lock(mutex_);
  const bool is_unix = domain == AF_UNIX;
  if ((domain != AF_INET && domain != AF_INET6 && !is_unix) ||
      (type != SOCK_STREAM && type != SOCK_DGRAM)) {
    return -EAFNOSUPPORT;
  }
  const end_ptr end = make(domain);
  if (type == SOCK_DGRAM) {
    end->socket = is_unix ? end::kind::unix_datagrams : end::kind::udp;
  } else if (is_unix) {
    end->socket = end::kind::unix_stream;
  }
  return put(end);
}

int simulated_kernel::bind(int fd, const sockaddr* to, socklen_t bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return -EBADF;
  if (at->is_unix()) {
    const std::string path = path_from(to, bytes);
    if (listener_at(path) != nullptr || receiver_at(path) != nullptr) return -EADDRINUSE;
    at->path = path;
    return 0;
  }
  endpoint name = endpoint_from(to, bytes);
  if (name.port() == 0) name = with_port(name, next_port_++);
  if (at->has_datagrams() ? receiver_at(name) != nullptr : listener_at(name) != nullptr)
    return -EADDRINUSE;
  at->local = name;
  return 0;
}

int simulated_kernel::listen(int fd, int) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return -EBADF;
  at->is = end::state::listening;
  return 0;
}

int simulated_kernel::accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return -EBADF;
  if (interrupts(*at)) return -EINTR;
  if (at->connections.empty()) return -EAGAIN;
  const end_ptr end = at->connections.front();
  at->connections.pop_front();
  give_name(end->peer, peer, bytes);
  return put(end);
}

// Both ends are on one machine: they are connected at once.
int simulated_kernel::connect_unix(const end_ptr& at, const std::string& path) {
  const end_ptr listener = listener_at(path);
  if (listener == nullptr) return -ENOENT;
  const end_ptr theirs = make(AF_UNIX);
  theirs->socket = end::kind::unix_stream;
  pair_up(at, theirs);
  at->is = end::state::connected;
  send_news(listener, news::connection, {}, theirs);
  return 0;
}

void simulated_kernel::pair_up(const end_ptr& at, const end_ptr& theirs) {
  theirs->is = end::state::connected;
  theirs->other = at;
  at->other = theirs;
}

int simulated_kernel::connect(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  const lock_of lock(mutex_);
  const auto found = ends_.find(fd);
  if (found == ends_.end()) return -EBADF;
  const end_ptr at = found->second;
  if (address->sa_family == AF_UNSPEC) {
    if (at->is != end::state::connected || at->has_datagrams() || at->is_unix())
      return -EAFNOSUPPORT;
    reset(*at);
    return 0;
  }
  if (at->is_unix())
    return at->has_datagrams() ? connect_to_receiver(*at, path_from(address, bytes))
                               : connect_unix(at, path_from(address, bytes));
  at->peer = endpoint_from(address, bytes);
  name_if_unbound(*at);
  if (at->has_datagrams()) {
    at->is = end::state::connected;
    return 0;
  }
  at->is = end::state::connecting;
  const end_ptr listener = listener_at(at->peer);
  if (listener == nullptr) {
    send_news(at, news::refused);
    return -EINPROGRESS;
  }
  const end_ptr theirs = make(at->peer.is_v6() ? AF_INET6 : AF_INET);
  theirs->local = at->peer;
  theirs->peer = at->local;
  pair_up(at, theirs);
  send_news(listener, news::connection, {}, theirs);
  send_news(at, news::connected);
  return interrupts(*at) ? -EINTR : -EINPROGRESS;
}

void simulated_kernel::reset(end& at) {
  if (const end_ptr to = at.other.lock(); to != nullptr) send_news(to, news::reset);
  at.other.reset();
  at.received.clear();
  at.written = true;
  at.go();
  at.error = ECONNRESET;
  raise(at, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
}

// The fault of a send, if a search has one here. Returns the error of the send, or 0.
int simulated_kernel::apply_fault(const end_ptr& at, const end_ptr& peer) {
  switch (simulation_.fault_at(sched::fault_point::send, &at->choices)) {
    case sched::fault::cut:
      reset(*at);
      return std::exchange(at->error, 0);
    case sched::fault::lost:
      lose(at);
      lose(peer);
      return 0;
    case sched::fault::slow:
      peer->last_due_ns = std::max(peer->last_due_ns, simulation_.now_ns()) + sched::fault_delay_ns;
      return 0;
    default:
      return 0;
  }
}

// Nothing arrives there but the error.
void simulated_kernel::lose(const end_ptr& end) {
  if (std::exchange(end->lost, true)) return;
  under_way_.push({simulation_.now_ns() + lost_ns, sent_++, end, news::timed_out, {}, nullptr, {}});
}

void simulated_kernel::name_if_unbound(end& at) {
  if (!at.is_bound()) at.local = with_port(at.local, next_port_++);
}

int simulated_kernel::shutdown(int fd, int) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return -EBADF;
  if (at->is != end::state::connected) return -ENOTCONN;
  if (const end_ptr to = at->other.lock(); to != nullptr && !at->written)
    send_news(to, news::finished);
  at->written = true;
  return 0;
}

int simulated_kernel::close(int fd) noexcept {
  const lock_of lock(mutex_);
  const auto found = ends_.find(fd);
  if (found == ends_.end()) return fd >= first_simulated ? -EBADF : real_kernel().close(fd);
  const end_ptr at = found->second;
  ends_.erase(found);
  // Unread bytes, and connections that were not accepted, are lost; the peer gets a reset.
  const auto leave = [this](end& gone, bool lost) {
    const end_ptr peer = gone.other.lock();
    if (peer == nullptr) return;
    send_news(peer, lost ? news::reset : news::finished);
    // A peer that waits for space finds that this end is closed.
    if (std::exchange(peer->wants_room, false)) send_news(peer, news::room);
  };
  leave(*at, at->closes_by == end::close_by::reset || !at->received.empty());
  for (const end_ptr& connection : at->connections) leave(*connection, true);
  // Senders that wait for space find that this end is closed.
  if (at->is_unix() && at->has_datagrams()) tell_of_room(*at);
  return 0;
}

std::ptrdiff_t simulated_kernel::receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                                         socklen_t* peer_bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr)
    return fd >= first_simulated ? -EBADF
                                 : real_kernel().receive(fd, data, bytes, peer, peer_bytes);
  if (interrupts(*at)) return -EINTR;
  if (at->has_datagrams()) return receive_packet(*at, data, bytes, peer, peer_bytes);
  if (at->received.empty()) {
    if (at->error != 0) return -std::exchange(at->error, 0);
    return at->has_finished() || bytes == 0 ? 0 : -EAGAIN;
  }
  const std::size_t part = std::min(bytes, at->received.size());
  std::memcpy(data, at->received.data(), part);
  at->received.erase(0, part);
  if (const end_ptr from = at->other.lock(); from != nullptr && from->wants_room) {
    from->wants_room = false;
    send_news(from, news::room);
  }
  return static_cast<std::ptrdiff_t>(part);
}

std::ptrdiff_t simulated_kernel::send(int fd, const void* data, std::size_t bytes,
                                      const sockaddr* to, socklen_t to_bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr)
    return fd >= first_simulated ? -EBADF : real_kernel().send(fd, data, bytes, to, to_bytes);
  if (interrupts(*at)) return -EINTR;
  const std::string_view sent(static_cast<const char*>(data), bytes);
  if (at->has_datagrams() && at->is_unix()) return send_by_path(ends_.at(fd), sent, to, to_bytes);
  if (at->has_datagrams()) return send_packet(*at, sent, to, to_bytes);
  if (at->error != 0) return -std::exchange(at->error, 0);
  const end_ptr peer = at->other.lock();
  if (at->written || at->is_gone() || (peer == nullptr && !at->lost)) return -EPIPE;
  if (at->lost) return static_cast<std::ptrdiff_t>(bytes);
  if (const int error = apply_fault(ends_.at(fd), peer); error != 0) return -error;
  if (at->lost) return static_cast<std::ptrdiff_t>(bytes);
  const std::size_t used = peer->received.size() + peer->under_way;
  const std::size_t room = peer->capacity - std::min(used, peer->capacity);
  const std::size_t part = std::min(bytes, room);
  if (part < bytes) at->wants_room = true;
  if (part == 0 && bytes != 0) return -EAGAIN;
  // The bytes travel in up to three pieces, one after the other.
  for (std::string_view left = sent.substr(0, part); !left.empty();) {
    const bool all = choose_for(*peer, 3) == 0;
    const std::size_t piece = 1 + choose_for(*peer, left.size());
    const std::size_t now = all ? left.size() : piece;
    send_news(peer, news::bytes, std::string(left.substr(0, now)));
    left.remove_prefix(now);
  }
  return static_cast<std::ptrdiff_t>(part);
}

std::ptrdiff_t simulated_kernel::read(int fd, void* data, std::size_t bytes) noexcept {
  return real_kernel().read(fd, data, bytes);
}
std::ptrdiff_t simulated_kernel::write(int fd, const void* data, std::size_t bytes) noexcept {
  return real_kernel().write(fd, data, bytes);
}

int simulated_kernel::set_option(int fd, int level, int name, int value) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr)
    return fd >= first_simulated ? -EBADF : real_kernel().set_option(fd, level, name, value);
  if (level == SOL_SOCKET && name == SO_LINGER)
    at->closes_by = value == 0 ? end::close_by::reset : end::close_by::end;
  return 0;
}

int simulated_kernel::pending_error(int fd) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  return at == nullptr ? EBADF : std::exchange(at->error, 0);
}

int simulated_kernel::local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  return at == nullptr ? -EBADF : give_name(at->local, name, bytes);
}

int simulated_kernel::peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr)
    return fd >= first_simulated ? -EBADF : real_kernel().peer_name(fd, name, bytes);
  if (at->is == end::state::connected && at->is_unix()) {
    name->sa_family = AF_UNIX;
    *bytes = sizeof(sa_family_t);
    return 0;
  }
  return at->is == end::state::connected ? give_name(at->peer, name, bytes) : -ENOTCONN;
}

int simulated_kernel::poll(int fd, short events) noexcept {
  const lock_of lock(mutex_);
  end* at = find(fd);
  if (at == nullptr) return fd >= first_simulated ? POLLNVAL : real_kernel().poll(fd, events);
  // poll(2) and epoll use the same bits.
  return static_cast<int>(at->level() & (static_cast<std::uint32_t>(events) | EPOLLERR | EPOLLHUP));
}

int simulated_kernel::duplicate(int fd) noexcept {
  return fd >= first_simulated ? -EBADF : real_kernel().duplicate(fd);
}
int simulated_kernel::make_bell() noexcept { return real_kernel().make_bell(); }
void simulated_kernel::ring(int bell) noexcept { real_kernel().ring(bell); }

// Files in a simulation are real files. The seed chooses which calls have to wait, are interrupted,
// or transfer only a part.

std::size_t simulated_kernel::part_of(std::size_t bytes) {
  const bool is_part = choose(4) == 0;
  const std::size_t part = 1 + choose(bytes);
  return bytes > 1 && is_part ? part : bytes;
}

int simulated_kernel::open(const char* path, int flags, mode_t permissions, bool at_once) noexcept {
  if (interrupts()) return -EINTR;
  if (at_once && choose(2) == 0) return -EAGAIN;
  return real_kernel().open(path, flags, permissions, false);
}

std::ptrdiff_t simulated_kernel::read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                                         bool at_once) noexcept {
  if (interrupts()) return -EINTR;
  if (at_once && choose(2) == 0) return -EAGAIN;
  const std::size_t most = part_of(bytes);
  return real_kernel().read_at(fd, data, most, offset, false);
}

std::ptrdiff_t simulated_kernel::write_at(int fd, const void* data, std::size_t bytes,
                                          std::int64_t offset) noexcept {
  if (interrupts()) return -EINTR;
  if (write_fails()) return -EIO;
  const std::size_t most = part_of(bytes);
  return real_kernel().write_at(fd, data, most, offset);
}

int simulated_kernel::sync(int fd, bool data_alone) noexcept {
  if (interrupts()) return -EINTR;
  return write_fails() ? -EIO : real_kernel().sync(fd, data_alone);
}

int simulated_kernel::status(int fd, struct statx* to) noexcept {
  return real_kernel().status(fd, to);
}

std::ptrdiff_t simulated_kernel::send_file(int to, int from, std::int64_t offset,
                                           std::size_t bytes) noexcept {
  {
    const lock_of lock(mutex_);
    if (find(to) == nullptr)
      return to >= first_simulated ? -EBADF : real_kernel().send_file(to, from, offset, bytes);
  }
  std::array<char, 65'536> part;
  const std::ptrdiff_t got =
      real_kernel().read_at(from, part.data(), std::min(bytes, part.size()), offset, false);
  return got <= 0 ? got : send(to, part.data(), static_cast<std::size_t>(got), nullptr, 0);
}

// The datagrams of the simulated network. UDP datagrams travel independently, and find their
// receiver by its address. Unix datagrams find it by its path, and stay in order.

namespace {

constexpr std::size_t datagram_max = 65'507, queue_max = 200 * 1024;
// bytes; number of datagrams
constexpr std::size_t unix_datagram_max = 200 * 1024, unix_queue_max = 10;

void give_path(const std::string& path, sockaddr* address, socklen_t* bytes) noexcept {
  if (address == nullptr) return;
  address->sa_family = AF_UNIX;
  const std::size_t most = std::min<std::size_t>(path.size(), *bytes - sizeof(sa_family_t));
  std::memcpy(address->sa_data, path.data(), most);
  *bytes = static_cast<socklen_t>(sizeof(sa_family_t) + most);
}

}  // namespace

simulated_kernel::end_ptr simulated_kernel::receiver_at(const std::string& path) const {
  for (const auto& [fd, entry] : ends_) {
    if (entry->has_datagrams() && entry->is_unix() && !path.empty() && entry->path == path)
      return entry;
  }
  return nullptr;
}

int simulated_kernel::connect_to_receiver(end& at, const std::string& path) const {
  if (receiver_at(path) == nullptr) return -ENOENT;
  at.peer_path = path;
  at.is = end::state::connected;
  return 0;
}

// No datagram is lost, and they stay in order. A sender waits until the receiver has space.
std::ptrdiff_t simulated_kernel::send_by_path(const end_ptr& from, std::string_view packet,
                                              const sockaddr* to, socklen_t to_bytes) {
  if (to == nullptr && from->is != end::state::connected) return -ENOTCONN;
  if (packet.size() > unix_datagram_max) return -EMSGSIZE;
  const end_ptr at = receiver_at(to == nullptr ? from->peer_path : path_from(to, to_bytes));
  if (at == nullptr) return to == nullptr ? -ECONNREFUSED : -ENOENT;
  if (at->is == end::state::connected && at->peer_path != from->path) return -EPERM;
  if (at->packets.size() + at->packets_under_way >= unix_queue_max) {
    from->wants_room = to == nullptr;
    return -EAGAIN;
  }
  ++at->packets_under_way;
  send_news(at, news::packet, std::string(packet), from);
  return static_cast<std::ptrdiff_t>(packet.size());
}

void simulated_kernel::tell_of_room(const end& at) {
  for (const auto& [fd, entry] : ends_) {
    if (!entry->wants_room || !entry->has_datagrams() || !entry->is_unix() ||
        entry->peer_path != at.path)
      continue;
    entry->wants_room = false;
    send_news(entry, news::room);
  }
}

simulated_kernel::end_ptr simulated_kernel::receiver_at(const endpoint& to) const {
  for (const auto& [fd, entry] : ends_) {
    if (entry->has_datagrams() && !entry->is_unix() && entry->is_bound() &&
        accepts(entry->local, to))
      return entry;
  }
  return nullptr;
}

// A datagram without a receiver, or without space at the receiver, is lost.
std::ptrdiff_t simulated_kernel::send_packet(end& from, std::string_view packet, const sockaddr* to,
                                             socklen_t to_bytes) {
  if (to == nullptr && from.is != end::state::connected) return -EDESTADDRREQ;
  if (packet.size() > datagram_max) return -EMSGSIZE;
  name_if_unbound(from);
  const endpoint where = to == nullptr ? from.peer : endpoint_from(to, to_bytes);
  const auto sent = static_cast<std::ptrdiff_t>(packet.size());
  const end_ptr at = receiver_at(where);
  if (ended_ || at == nullptr) return sent;
  // A sender that is bound to all addresses appears with the loopback address.
  endpoint sender = from.local;
  if (sender == with_port(endpoint::any(0), sender.port()))
    sender = endpoint::loopback(sender.port());
  if (sender == endpoint::any_v6(sender.port())) sender = endpoint::loopback_v6(sender.port());
  if (at->is == end::state::connected && at->peer != sender) return sent;
  std::size_t queued = at->under_way + packet.size();
  for (const end::packet& other : at->packets) queued += other.bytes.size();
  if (queued > queue_max) return sent;
  const sched::fault wrong = simulation_.fault_at(sched::fault_point::send, &from.choices);
  if (wrong == sched::fault::cut || wrong == sched::fault::lost) return sent;
  at->under_way += packet.size();
  ++at->packets_under_way;
  const std::int64_t due = simulation_.now_ns() + delay_to(*at) +
                           (wrong == sched::fault::slow ? sched::fault_delay_ns : 0);
  under_way_.push({due, sent_++, at, news::packet, std::string(packet), nullptr, sender});
  return sent;
}

std::ptrdiff_t simulated_kernel::receive_packet(end& at, void* data, std::size_t bytes,
                                                sockaddr* peer, socklen_t* peer_bytes) {
  if (at.packets.empty()) return -EAGAIN;
  const end::packet first = std::move(at.packets.front());
  at.packets.pop_front();
  const std::size_t part = std::min(bytes, first.bytes.size());
  if (part != 0) std::memcpy(data, first.bytes.data(), part);
  if (at.is_unix()) {
    give_path(first.path, peer, peer_bytes);
    tell_of_room(at);
  } else {
    give_name(first.from, peer, peer_bytes);
  }
  return static_cast<std::ptrdiff_t>(peer == nullptr ? part : first.bytes.size());
}

}  // namespace troupe::io
