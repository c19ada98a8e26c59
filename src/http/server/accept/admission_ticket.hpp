// admission_ticket: counts one connection, for its server and for the address of its client, from
// the time when the connection is accepted until it ends. It also keeps the client's address if a
// proxy has sent it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "http/behind_proxy/proxy_header.hpp"
#include "http/server/server_state.hpp"

namespace troupe::http {

class admission_ticket {
 public:
  admission_ticket(std::shared_ptr<server_state> server, const std::string& address)
      : server_(std::move(server)) {
    is_welcome_ = server_->admit(address, peer_);
  }
  admission_ticket(admission_ticket&& other) noexcept = default;
  admission_ticket& operator=(admission_ticket&& other) noexcept {
    std::swap(server_, other.server_);
    std::swap(peer_, other.peer_);
    std::swap(is_welcome_, other.is_welcome_);
    std::swap(client_, other.client_);
    return *this;
  }
  ~admission_ticket() {
    if (server_ != nullptr) server_->dismiss(peer_);
  }

  const std::shared_ptr<server_state>& of() const noexcept { return server_; }
  // False when the client's address already has too many connections: then the connection is to be
  // turned away.
  bool is_welcome() const noexcept { return is_welcome_; }
  // The client for which the connection counts.
  server_state::client_peer& counted() const noexcept { return *peer_; }

  // A proxy has named the client. From now on the connection counts for the client's address, which
  // is "" if it has none. Call it once, for a ticket that was made without an address.
  void set_client(const std::string& address, std::unique_ptr<proxy_header> said) {
    client_ = std::move(said);
    is_welcome_ = server_->admit_for(address, peer_);
  }
  // The header that a proxy has sent; null if the connection's own peer is the client.
  const proxy_header* client() const noexcept { return client_.get(); }

 private:
  std::shared_ptr<server_state> server_;
  server_state::client_peer* peer_ = nullptr;
  bool is_welcome_ = false;
  std::unique_ptr<proxy_header> client_;
};

}  // namespace troupe::http
