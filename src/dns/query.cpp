#include "dns/query.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "troupe/dns/error.hpp"
#include "troupe/io/error.hpp"

namespace troupe::dns {
namespace {

constexpr int events_max = 16;  // of one call of epoll_wait

// Initializes c-ares once in the process, before its first channel is made.
void begin_library() {
  static const int status = ares_library_init(ARES_LIB_INIT_ALL);
  if (status != ARES_SUCCESS) throw std::bad_alloc();
}

resolve_failure failure_of(int status) noexcept {
  switch (status) {
    case ARES_ENOTFOUND:
      return resolve_failure::host_not_found;
    case ARES_ENODATA:
      return resolve_failure::no_data;
    case ARES_EBADNAME:
      return resolve_failure::bad_name;
    default:
      return resolve_failure::try_again;
  }
}

}  // namespace

query::query(const resolver_options& options, const std::string& host, std::uint16_t port)
    : host_(host), port_(port), family_(options.family) {
  begin_library();
  set_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (set_ < 0) throw io_error("epoll_create1", host, errno);
  try {
    make_channel(options);
  } catch (...) {
    if (channel_ != nullptr) ares_destroy(channel_);
    ::close(set_);
    throw;
  }
}

void query::make_channel(const resolver_options& options) {
  ares_options chosen{};
  int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS;
  chosen.timeout =
      static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(options.try_for).count());
  chosen.tries = options.tries;
  chosen.sock_state_cb = &on_socket;
  chosen.sock_state_cb_data = this;
  // c-ares copies all of these values.
  std::string lookups = options.hosts_file ? "fb" : "b";
  chosen.lookups = lookups.data();
  std::vector<std::string> domains = options.search;
  std::vector<char*> domain_names;
  for (std::string& domain : domains) domain_names.push_back(domain.data());
  if (options.own_search) {
    mask |= ARES_OPT_DOMAINS;
    chosen.domains = domain_names.data();
    chosen.ndomains = static_cast<int>(domain_names.size());
  }
  const int status = ares_init_options(&channel_, &chosen, mask);
  if (status == ARES_ENOMEM) throw std::bad_alloc();
  if (status != ARES_SUCCESS)
    throw resolve_error(resolve_failure::try_again, host_, ares_strerror(status));
  if (options.servers.empty()) return;

  std::vector<ares_addr_port_node> nodes(options.servers.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const endpoint& server = options.servers[i];
    ares_addr_port_node& node = nodes[i];
    node.next = i + 1 < nodes.size() ? &nodes[i + 1] : nullptr;
    node.family = server.data()->sa_family;
    node.udp_port = node.tcp_port = server.port();
    if (server.is_v6()) {
      std::memcpy(&node.addr.addr6,
                  &reinterpret_cast<const sockaddr_in6*>(server.data())->sin6_addr,
                  sizeof node.addr.addr6);
    } else {
      std::memcpy(&node.addr.addr4, &reinterpret_cast<const sockaddr_in*>(server.data())->sin_addr,
                  sizeof node.addr.addr4);
    }
  }
  if (ares_set_servers_ports(channel_, nodes.data()) != ARES_SUCCESS) throw std::bad_alloc();
}

query::~query() {
  ares_destroy(channel_);  // calls back for the last time, if the query is not done
  ::close(set_);
}

void query::start() {
  ares_addrinfo_hints hints{};
  hints.ai_family = family_ == address_family::any  ? AF_UNSPEC
                    : family_ == address_family::v4 ? AF_INET
                                                    : AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  ares_getaddrinfo(channel_, host_.c_str(), nullptr, &hints, &on_answer, this);
}

// c-ares no longer needs a socket and is about to close it.
void query::on_socket(void* self, ares_socket_t fd, int readable, int writable) noexcept {
  auto& lookup = *static_cast<query*>(self);
  epoll_event wanted{};
  wanted.events = (readable != 0 ? EPOLLIN : 0u) | (writable != 0 ? EPOLLOUT : 0u);
  wanted.data.fd = fd;
  if (wanted.events == 0) {
    ::epoll_ctl(lookup.set_, EPOLL_CTL_DEL, fd, nullptr);
  } else if (::epoll_ctl(lookup.set_, EPOLL_CTL_MOD, fd, &wanted) != 0 &&
             ::epoll_ctl(lookup.set_, EPOLL_CTL_ADD, fd, &wanted) != 0) {
    lookup.set_failed_ = true;
  }
}

void query::on_answer(void* self, int status, int, ares_addrinfo* found) noexcept {
  auto& lookup = *static_cast<query*>(self);
  const std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> owned(found, &ares_freeaddrinfo);
  lookup.done_ = true;
  lookup.status_ = status;
  if (status != ARES_SUCCESS || found == nullptr) return;
  try {
    lookup.keep(*found);
  } catch (...) {
    lookup.memory_failed_ = true;
  }
}

void query::keep(const ares_addrinfo& found) {
  for (const ares_addrinfo_node* node = found.nodes; node != nullptr; node = node->ai_next) {
    endpoint at = node->ai_family == AF_INET6 ? endpoint::any_v6(port_) : endpoint::any(port_);
    if (node->ai_family == AF_INET6) {
      const auto& from = *reinterpret_cast<const sockaddr_in6*>(node->ai_addr);
      auto& target = *reinterpret_cast<sockaddr_in6*>(at.data());
      target.sin6_addr = from.sin6_addr;
      target.sin6_scope_id = from.sin6_scope_id;
    } else if (node->ai_family == AF_INET) {
      reinterpret_cast<sockaddr_in*>(at.data())->sin_addr =
          reinterpret_cast<const sockaddr_in*>(node->ai_addr)->sin_addr;
    } else {
      continue;
    }
    if (std::find(found_.begin(), found_.end(), at) == found_.end()) found_.push_back(at);
  }
}

std::chrono::nanoseconds query::next() const {
  timeval room{};
  const timeval* due = ares_timeout(channel_, nullptr, &room);
  if (due == nullptr) return std::chrono::nanoseconds::max();
  // Adds a millisecond: c-ares does not treat a deadline as over at exactly that time.
  return std::chrono::seconds(due->tv_sec) + std::chrono::microseconds(due->tv_usec) +
         std::chrono::milliseconds(1);
}

void query::process() {
  std::array<epoll_event, events_max> events;
  const int count = ::epoll_wait(set_, events.data(), events_max, 0);
  for (int i = 0; i < count && !done_; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    // An error of a socket shows when the socket is used.
    const bool failed = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    const bool reads = failed || (event.events & EPOLLIN) != 0,
               writes = failed || (event.events & EPOLLOUT) != 0;
    // The event before may have closed this socket; c-ares then finds no connection for it.
    ares_process_fd(channel_, reads ? event.data.fd : ARES_SOCKET_BAD,
                    writes ? event.data.fd : ARES_SOCKET_BAD);
  }
  // Lets c-ares handle deadlines that are over.
  if (count <= 0 && !done_) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

std::vector<endpoint> query::take() {
  if (memory_failed_ || status_ == ARES_ENOMEM) throw std::bad_alloc();
  if (set_failed_ && status_ != ARES_SUCCESS) throw io_error("epoll_ctl", host_, ENOMEM);
  if (status_ != ARES_SUCCESS)
    throw resolve_error(failure_of(status_), host_, ares_strerror(status_));
  if (found_.empty())
    throw resolve_error(resolve_failure::no_data, host_, "the answer has no address");
  return std::move(found_);
}

}  // namespace troupe::dns
