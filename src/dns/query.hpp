// query: asks c-ares for one name, with a channel of its own.
//
// Each query has its own channel, because two threads may not use one channel at the same time, and
// because each channel then has its own port. The sockets of the channel are in one epoll set,
// which is itself a descriptor that can be awaited.
// Owner: the coroutine that asks; one thread at a time. c-ares calls back only within start(),
// process() and the destructor.
#pragma once

#include <ares.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/dns/options.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::dns {

class query {
 public:
  // Throws resolve_error, io_error, std::bad_alloc.
  query(const resolver_options& options, const std::string& host, std::uint16_t port);
  query(const query&) = delete;
  query& operator=(const query&) = delete;
  // Ends the query, even if it is not done.
  ~query();

  void start();
  bool done() const noexcept { return done_; }
  // Readable when process() has something to do.
  int fd() const noexcept { return set_; }
  // The time after which process() has something to do in any case.
  std::chrono::nanoseconds next() const;
  void process();
  // Returns the result. Call it when done() is true. Throws resolve_error.
  std::vector<endpoint> take();

 private:
  static void on_socket(void* self, ares_socket_t fd, int readable, int writable) noexcept;
  static void on_answer(void* self, int status, int timeouts, ares_addrinfo* found) noexcept;
  void make_channel(const resolver_options& options);
  void keep(const ares_addrinfo& found);

  const std::string& host_;
  const std::uint16_t port_;
  const address_family family_;
  int set_ = -1;
  ares_channel channel_ = nullptr;
  bool done_ = false;
  int status_ = ARES_SUCCESS;
  bool set_failed_ = false, memory_failed_ = false;
  std::vector<endpoint> found_;
};

}  // namespace troupe::dns
