// info: a server's description of itself, and the client's description of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::nats {

// The JSON of INFO, as far as it is used.
struct server_info {
  std::string server_id, server_name, version;
  std::string nonce;  // to be signed
  std::vector<std::string> connect_urls;
  std::size_t max_payload = 1024 * 1024;
  bool headers = false, tls_required = false, tls_available = false, auth_required = false;

  // Nothing if it is no such JSON.
  static std::optional<server_info> parse(std::string_view json);
};

// The client's identity in CONNECT; empty: none.
struct identity {
  std::string user, password, token;
  std::string jwt, nkey, signature;
};

// "CONNECT {…}\r\nPING\r\n"
std::string hello(const std::string& name, bool secure, const identity& login);

}  // namespace troupe::nats
