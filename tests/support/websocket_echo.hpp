// The WebSocket that most tests talk to: it sends back what it receives, as text or as bytes.
#pragma once

#include <string>
#include <utility>

#include "troupe/http/websocket.hpp"

namespace troupe::test {

inline task<> echo_messages(http::websocket& peer) {
  for (;;) {
    const auto came = co_await peer.receive();
    if (!came) break;
    std::string copy(came->data);
    if (came->is_text) co_await peer.send(std::move(copy));
    if (!came->is_text) co_await peer.send_binary(std::move(copy));
  }
}

}  // namespace troupe::test
