// A proxy for HTTP: it opens tunnels, and answers requests in the absolute form itself.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "http/client/scripted.hpp"
#include "troupe/dns/connect.hpp"

namespace troupe::test {

class small_proxy {
 public:
  std::string wants;            // the credentials, "Basic …"; "": none
  std::string says_to_connect;  // sent instead of the answer to CONNECT, before the proxy ends

  // Call it in a task.
  void start(runtime& rt) {
    listen_options weak;
    weak.weak = true;
    auto listener = tcp_listener::listen(endpoint::loopback(0), weak);
    at_ = listener.local();
    rt.spawn(serve(rt, std::move(listener)));
  }
  std::string authority() const { return "127.0.0.1:" + std::to_string(at_.port()); }
  // The heads of the requests to the proxy.
  std::vector<std::string> heads() {
    std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  task<> serve(runtime& rt, tcp_listener listener) {
    for (;;) {
      tcp_stream peer = co_await listener.accept();
      rt.spawn(guard(std::move(peer)));
    }
  }
  task<> guard(tcp_stream peer) {
    try {
      co_await talk(peer);
    } catch (const error&) {
    }
  }
  task<> talk(tcp_stream& peer) {
    for (std::string input;;) {
      while (!input.contains("\r\n\r\n")) {
        std::array<char, 4096> buffer;
        const std::size_t bytes = co_await peer.read(buffer);
        if (bytes == 0) co_return;
        input.append(buffer.data(), bytes);
      }
      const std::string head = input.substr(0, input.find("\r\n\r\n") + 4);
      input.erase(0, head.size());
      {
        std::lock_guard lock(mutex_);
        heads_.push_back(head);
      }
      if (!wants.empty() && !head.contains("Proxy-Authorization: " + wants + "\r\n")) {
        co_await peer.write_all(
            "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno");
        continue;
      }
      if (head.starts_with("CONNECT ")) co_return co_await tunnel(peer, head);
      co_await peer.write_all(with_length("proxied " + head));
    }
  }
  task<> tunnel(tcp_stream& peer, const std::string& head) {
    if (!says_to_connect.empty()) {
      co_await peer.write_all(says_to_connect);
      co_return;
    }
    const std::size_t colon = head.find(':');
    const std::string host = head.substr(8, colon - 8);
    const auto port = static_cast<std::uint16_t>(std::stoi(head.substr(colon + 1)));
    tcp_stream target = co_await troupe::connect(host, port);
    // Its length counts for nothing (RFC 9110, 9.3.6).
    co_await peer.write_all(
        "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\nVia: test\r\n\r\n");
    auto both = when_any(copy(peer, target), copy(target, peer));
    co_await std::move(both);
  }
  static task<> copy(tcp_stream& from, tcp_stream& to) {
    std::array<char, 16'384> buffer;
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer);
      if (bytes == 0) co_return;
      co_await to.write_all(std::string_view(buffer.data(), bytes));
    }
  }

  endpoint at_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
};

}  // namespace troupe::test
