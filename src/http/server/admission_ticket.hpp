// admission_ticket: counts one connection, for its server and for the address of its client, from
// the time when the connection is accepted until it ends. It also keeps who the client is where a
// proxy has said that.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "http/behind_proxy/proxy_header.hpp"
#include "http/server/server_state.hpp"

namespace troupe::http {

class admission_ticket {
 public:
  admission_ticket(std::shared_ptr<server_state> of, const std::string& address)
      : of_(std::move(of)) {
    if (!of_->admit(address, peer_)) peer_ = &unwelcome;
  }
  admission_ticket(admission_ticket&& other) noexcept = default;
  admission_ticket& operator=(admission_ticket&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(peer_, other.peer_);
    std::swap(client_, other.client_);
    return *this;
  }
  ~admission_ticket() {
    if (of_ != nullptr) of_->dismiss(is_welcome() ? peer_ : nullptr);
  }

  const std::shared_ptr<server_state>& of() const noexcept { return of_; }
  // False when the client's address already has too many connections: then the connection is to be
  // turned away.
  bool is_welcome() const noexcept { return peer_ != &unwelcome; }

  // A proxy has said who the client is. From now on the connection counts for the client's address,
  // too, which is "" if it has none. Call it once, for a ticket that was made without an address.
  void set_client(const std::string& address, std::unique_ptr<proxy_header> said) {
    client_ = std::move(said);
    if (!of_->admit_for(address, peer_)) peer_ = &unwelcome;
  }
  // What a proxy has said; null if the connection's own peer is the client.
  const proxy_header* client() const noexcept { return client_.get(); }

 private:
  inline static server_state::peer_count unwelcome;  // stands for the entry of an address
  std::shared_ptr<server_state> of_;
  server_state::peer_count* peer_ = nullptr;
  std::unique_ptr<proxy_header> client_;
};

}  // namespace troupe::http
