// simulated_kernel: a network within the process, for the simulated policy. Sent bytes arrive
// later, by virtual time and the choices of the seed: in parts, each at its own time, and in any
// order between connections.
//
// Only sockets are simulated. All other descriptors (pipes, eventfds, files) are real, and real
// calls are made. For calls on files the seed chooses which have to wait for a disk, are
// interrupted, or transfer only a part. A program that leaves its files as it found them is
// therefore repeated exactly.
// Threads: the simulation's. Other threads may only close and ring.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "io/kernel/kernel.hpp"
#include "sched/policies/simulated.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::io {

struct simulated_end;

class simulated_kernel final : public kernel {
 public:
  explicit simulated_kernel(sched::simulated& simulation) : simulation_(simulation) {}

  int socket(int domain, int type, int protocol) noexcept override;
  int bind(int fd, const sockaddr* to, socklen_t bytes) noexcept override;
  int listen(int fd, int backlog) noexcept override;
  int accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept override;
  int connect(int fd, const sockaddr* address, socklen_t bytes) noexcept override;
  int shutdown(int fd, int how) noexcept override;
  int close(int fd) noexcept override;
  std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                         socklen_t* peer_bytes) noexcept override;
  std::ptrdiff_t send(int fd, const void* data, std::size_t bytes, const sockaddr* to,
                      socklen_t to_bytes) noexcept override;
  std::ptrdiff_t read(int fd, void* data, std::size_t bytes) noexcept override;
  std::ptrdiff_t write(int fd, const void* data, std::size_t bytes) noexcept override;
  int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept override;
  std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                         bool at_once) noexcept override;
  std::ptrdiff_t write_at(int fd, const void* data, std::size_t bytes,
                          std::int64_t offset) noexcept override;
  int sync(int fd, bool data_alone) noexcept override;
  int status(int fd, struct statx* to) noexcept override;
  std::ptrdiff_t send_file(int to, int from, std::int64_t offset,
                           std::size_t bytes) noexcept override;
  int set_option(int fd, int level, int name, int value) noexcept override;
  int pending_error(int fd) noexcept override;
  int local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override;
  int peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override;
  int poll(int fd, short events) noexcept override;
  int make_set() noexcept override;
  int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept override;
  int remove(int set, int fd) noexcept override;
  int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept override;
  int duplicate(int fd) noexcept override;
  int make_bell() noexcept override;
  void ring(int bell) noexcept override;
  std::optional<std::int64_t> next_ns() noexcept override;
  bool is_outside(int fd) const noexcept override { return fd < first_simulated; }
  void end_simulation() noexcept override;

 private:
  using end = simulated_end;
  using end_ptr = std::shared_ptr<end>;
  // The events that can be on their way to an end.
  enum class news : std::uint8_t {
    bytes,
    connection,
    connected,
    refused,
    finished,
    reset,
    timed_out,
    room,
    packet
  };
  struct arrival {
    std::int64_t due_ns;
    // items that are due at the same time arrive in the order in which they were sent
    std::uint64_t number;
    std::weak_ptr<end> target;
    news event;
    std::string bytes;
    end_ptr connection;
    endpoint from;  // of a datagram
    bool operator<(const arrival& other) const noexcept {
      return due_ns != other.due_ns ? due_ns > other.due_ns : number > other.number;
    }
  };

  static constexpr std::uint16_t first_port = 40'000;
  static constexpr std::int64_t delay_ns_max = 100'000;
  // about as long as Linux sends again
  static constexpr std::int64_t lost_ns = 900'000'000'000;

  end* find(int fd) noexcept;
  int put(end_ptr end);
  end_ptr make(int domain);
  end_ptr listener_at(const endpoint& to) const;
  end_ptr listener_at(const std::string& path) const;
  end_ptr receiver_at(const endpoint& to) const;
  end_ptr receiver_at(const std::string& path) const;
  int connect_to_receiver(end& at, const std::string& path) const;
  std::ptrdiff_t send_by_path(const end_ptr& from, std::string_view packet, const sockaddr* to,
                              socklen_t to_bytes);
  void tell_of_room(const end& at);
  int connect_unix(const end_ptr& at, const std::string& path);
  void reset(end& at);
  int apply_fault(const end_ptr& at, const end_ptr& peer);
  void lose(const end_ptr& end);
  static void pair_up(const end_ptr& at, const end_ptr& theirs);
  void name_if_unbound(end& at);
  std::ptrdiff_t send_packet(end& from, std::string_view packet, const sockaddr* to,
                             socklen_t to_bytes);
  std::ptrdiff_t receive_packet(end& at, void* data, std::size_t bytes, sockaddr* peer,
                                socklen_t* peer_bytes);
  void send_news(const end_ptr& end, news event, std::string bytes = {},
                 end_ptr connection = nullptr);
  void arrive(arrival& arrival);
  void raise(end& at, std::uint32_t events);
  void catch_up();
  std::uint64_t choose(std::uint64_t bound) {
    return simulation_.choose(sched::choice_kind::call, bound);
  }
  bool interrupts() { return choose(16) == 0; }
  std::uint64_t choose_for(end& end, std::uint64_t bound);
  bool interrupts(end& either) { return choose_for(either, 16) == 0; }
  std::int64_t delay_to(end& end);
  bool write_fails() {
    return simulation_.fault_at(sched::fault_point::write) == sched::fault::write_fails;
  }
  std::size_t part_of(std::size_t bytes);

  sched::simulated& simulation_;
  std::recursive_mutex mutex_;
  bool ended_ = false;  // the simulation has ended
  std::map<int, end_ptr> ends_;
  std::priority_queue<arrival> under_way_;
  std::vector<std::weak_ptr<end>> raised_;
  std::uint64_t sent_ = 0;
  std::uint16_t next_port_ = first_port;
  int real_set_ = -1;
};

}  // namespace troupe::io
