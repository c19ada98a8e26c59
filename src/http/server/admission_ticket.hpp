// admission_ticket: counts one connection, for its server and for the address of its client, from
// the time when the connection is accepted until it ends.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "http/server/server_state.hpp"

namespace troupe::http {

class admission_ticket {
 public:
  admission_ticket(std::shared_ptr<server_state> of, const std::string& address)
      : of_(std::move(of)), is_welcome_(of_->admit(address, peer_)) {}
  admission_ticket(admission_ticket&& other) noexcept = default;
  admission_ticket& operator=(admission_ticket&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(peer_, other.peer_);
    std::swap(is_welcome_, other.is_welcome_);
    return *this;
  }
  ~admission_ticket() {
    if (of_ != nullptr) of_->dismiss(peer_);
  }

  const std::shared_ptr<server_state>& of() const noexcept { return of_; }
  // False when the client's address already has too many connections: then the connection is to be
  // turned away.
  bool is_welcome() const noexcept { return is_welcome_; }

 private:
  std::shared_ptr<server_state> of_;
  server_state::peer_count* peer_ = nullptr;
  bool is_welcome_;
};

}  // namespace troupe::http
