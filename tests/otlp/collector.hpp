// collector: a plain thread that takes requests of an exporter, and answers as a test says.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/otlp/options.hpp"

namespace troupe::test {

// Answers each request with what the function says, on a thread of each connection; without an
// answer it closes.
class collector {
 public:
  using function = std::function<std::string(int request)>;
  explicit collector(function says) : says_(std::move(says)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    socklen_t bytes = sizeof at;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &bytes);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/v1/traces";
    thread_ = std::thread([this] { serve(); });
  }
  collector(const collector&) = delete;
  collector& operator=(const collector&) = delete;
  ~collector() {
    ends_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    {
      std::lock_guard lock(mutex_);
      for (const int peer : peers_) ::shutdown(peer, SHUT_RDWR);
    }
    for (std::thread& connection : connections_) connection.join();
    ::close(listener_);
  }
  const std::string& url() const { return url_; }
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!ends_) {
      const int peer = ::accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      std::lock_guard lock(mutex_);
      peers_.push_back(peer);
      connections_.emplace_back([this, peer] {
        while (!ends_ && serve_one(peer)) {
        }
        std::lock_guard closing(mutex_);
        std::erase(peers_, peer);
        ::close(peer);
      });
    }
  }
  bool serve_one(int peer) {
    std::string text;
    std::size_t whole = std::string::npos;
    while (text.size() < whole) {
      char buffer[4096];
      const ssize_t bytes = ::read(peer, buffer, sizeof buffer);
      if (bytes <= 0) return false;
      text.append(buffer, static_cast<std::size_t>(bytes));
      const std::size_t head = text.find("\r\n\r\n");
      const std::size_t length = text.find("Content-Length: ");
      if (head != std::string::npos && length < head)
        whole = head + 4 + static_cast<std::size_t>(std::atol(text.c_str() + length + 16));
    }
    int number = 0;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(text);
      number = static_cast<int>(requests_.size());
    }
    const std::string answer = says_(number);
    for (std::size_t sent = 0; sent < answer.size();) {
      const ssize_t bytes = ::send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (bytes <= 0) return false;
      sent += static_cast<std::size_t>(bytes);
    }
    return !answer.empty();
  }

  const function says_;
  int listener_ = -1;
  std::string url_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<int> peers_;
  std::vector<std::thread> connections_;
  std::thread thread_;
};

inline std::string answer(const std::string& status, const std::string& body = "{}",
                          const std::string& fields = {}) {
  return "HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline otlp::exporter_options to(const std::string& url) {
  otlp::exporter_options made;
  made.url = url;
  made.interval = std::chrono::milliseconds(10);
  return made;
}

// All that comes with one of these paths.
inline std::string bodies_of(collector& at, const std::string& path) {
  std::string all;
  for (const std::string& one : at.requests())
    if (one.starts_with("POST " + path + " ")) all += one;
  return all;
}

inline bool come_to(collector& at, std::size_t requests) {
  for (int i = 0; i < 3'000 && at.requests().size() < requests; ++i)
    // sleeps: the exporter's thread tells nobody of requests
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return at.requests().size() >= requests;
}

}  // namespace troupe::test
