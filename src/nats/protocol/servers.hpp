// servers: the addresses that a connection may use, and the order in which it tries them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::nats {

struct server {
  std::string host;
  std::uint16_t port = 4222;
  std::string user, password;  // of the address; a user alone is a token
  std::string tls_name;        // the name in its certificate, where it differs from the host
  bool secure = false;

  std::string authority() const;
};

// "nats://user:password@host:4222,tls://[::1]:4333,host". Throws option_error.
std::vector<server> parse_servers(std::string_view list);

class server_list {
 public:
  explicit server_list(std::vector<server> given) : all_(std::move(given)) {}

  // All of them, in random order; the server of the last connection comes last.
  std::vector<server> next_round() const;
  void connected_to(const server& current) { last_ = current.authority(); }
  // Adds the servers that a server has listed ("host:port"); text that is no address is left out.
  void add(const std::vector<std::string>& told);
  std::size_t size() const noexcept { return all_.size(); }

 private:
  std::vector<server> all_;
  std::string last_;
};

}  // namespace troupe::nats
