// The same as sources.hpp, of what the system gives. A number is a byte, a line or a datagram.
#pragma once

#include "given_up/sources.hpp"
#include "support/io.hpp"

namespace troupe::test {

// The bytes 0, 1, … 250, 0, … from a peer that writes them in pieces of one to four.
class bytes_source : public source {
 public:
  void start(int count) override {
    auto [from, to] = pipe_stream::make();
    from_ = std::move(from);
    spawn(fill(std::move(to), count));
  }

 protected:
  static task<> fill(pipe_stream to, int count) {
    std::string piece;
    for (int i = 0; i < count; ++i) {
      piece += static_cast<char>(i % 251);
      const bool waits = pauses(i);
      if (!waits) continue;
      co_await to.write_all(piece);
      piece.clear();
      co_await yield();
    }
    co_await to.write_all(piece);
  }
  // The number of the next byte, which must be this one.
  int check(char byte) noexcept {
    return static_cast<unsigned char>(byte) == given_ % 251 ? given_++ : -1;
  }
  bool has_rest() const noexcept { return !rest_.empty(); }
  int take_rest() noexcept {
    const int number = check(rest_.front());
    rest_.erase(0, 1);
    return number;
  }
  pipe_stream from_;
  std::string rest_;
  int given_ = 0;
};

class pipe_read_source final : public bytes_source {
 public:
  task<std::optional<int>> next() override {
    if (has_rest()) co_return take_rest();
    std::array<char, 5> buffer{};
    const std::size_t bytes = co_await from_.read(buffer);
    if (bytes == 0) co_return std::nullopt;
    rest_.assign(buffer.data(), bytes);
    co_return take_rest();
  }
};

class read_some_source final : public bytes_source {
 public:
  task<std::optional<int>> next() override {
    if (has_rest()) co_return take_rest();
    const io_buffer got = co_await from_.read_some();
    if (got.empty()) co_return std::nullopt;
    rest_ = got.text();
    co_return take_rest();
  }
};

class read_exact_source final : public bytes_source {
 public:
  void start(int count) override {
    left_ = count;
    bytes_source::start(count);
  }
  task<std::optional<int>> next() override {
    if (has_rest()) co_return take_rest();
    if (left_ == 0) co_return std::nullopt;
    std::array<char, 4> buffer{};
    const std::size_t wanted = std::min(buffer.size(), static_cast<std::size_t>(left_));
    co_await from_.read_exact(std::span(buffer).first(wanted));
    left_ -= static_cast<int>(wanted);
    rest_.assign(buffer.data(), wanted);
    co_return take_rest();
  }

 private:
  int left_ = 0;
};

class tcp_read_source final : public source {
 public:
  void start(int count) override {
    listener_ = tcp_listener::listen(endpoint::loopback(0));
    spawn(fill(listener_.local(), count));
  }
  task<std::optional<int>> next() override {
    if (!peer_.is_open()) peer_ = co_await listener_.accept();
    if (rest_.empty()) {
      std::array<char, 7> buffer{};
      const std::size_t bytes = co_await peer_.read(buffer);
      if (bytes == 0) co_return std::nullopt;
      rest_.assign(buffer.data(), bytes);
    }
    const bool is_next = static_cast<unsigned char>(rest_.front()) == given_ % 251;
    rest_.erase(0, 1);
    co_return is_next ? given_++ : -1;
  }

 private:
  static task<> fill(endpoint at, int count) {
    tcp_stream to = co_await tcp_stream::connect(at);
    std::string piece;
    for (int i = 0; i < count; ++i) {
      piece += static_cast<char>(i % 251);
      const bool waits = pauses(i);
      if (!waits) continue;
      co_await to.write_all(piece);
      piece.clear();
      co_await yield();
    }
    co_await to.write_all(piece);
  }
  tcp_listener listener_;
  tcp_stream peer_;
  std::string rest_;
  int given_ = 0;
};

class lines_source final : public source {
 public:
  void start(int count) override {
    auto [from, to] = pipe_stream::make();
    all_ = streams::lines(std::move(from));
    spawn(fill(std::move(to), count));
  }
  task<std::optional<int>> next() override {
    const auto line = co_await all_.next();
    co_return line ? std::optional(std::stoi(*line)) : std::nullopt;
  }

 private:
  static task<> fill(pipe_stream to, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string line = std::to_string(i) + '\n';
      co_await to.write_all(std::string_view(line));
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  async_generator<std::string> all_;
};

// A number is a connection.
class accept_source final : public source {
 public:
  void start(int count) override {
    count_ = std::min(count, connections_max);
    listener_ = tcp_listener::listen(endpoint::loopback(0));
    spawn(fill(listener_.local(), count_));
  }
  task<std::optional<int>> next() override {
    if (accepted_ == count_) co_return std::nullopt;
    const tcp_stream peer = co_await listener_.accept();
    co_return accepted_++;
  }
  static constexpr int connections_max = 100;

 private:
  static task<> fill(endpoint at, int count) {
    for (int i = 0; i < count; ++i) {
      const tcp_stream to = co_await tcp_stream::connect(at);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  tcp_listener listener_;
  int count_ = 0, accepted_ = 0;
};

// The receiver says when it has taken one, since the system drops datagrams that find no space, and
// those of the simulated network overtake each other.
class datagram_source final : public source {
 public:
  void start(int count) override {
    count_ = count;
    at_ = udp_socket::bind(endpoint::loopback(0));
    spawn(fill(at_.local(), room_, count));
  }
  task<std::optional<int>> next() override {
    if (given_ == count_) co_return std::nullopt;
    int number = -1;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    co_await at_.receive(bytes);
    room_->add(1);
    co_return number == given_ ? given_++ : -1;
  }

 private:
  static task<> fill(endpoint at, std::shared_ptr<semaphore> room, int count) {
    udp_socket to = udp_socket::connect(at);
    for (int i = 0; i < count; ++i) {
      auto permit = co_await room->acquire();
      permit.forget();
      const std::string_view bytes(reinterpret_cast<const char*>(&i), sizeof i);
      co_await to.send(bytes);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  const std::shared_ptr<semaphore> room_ = std::make_shared<semaphore>(1);
  udp_socket at_;
  int count_ = 0, given_ = 0;
};

inline std::vector<named_source> io_sources() {
  return {{"tcp_read", &make_source<tcp_read_source>},
          {"pipe_read", &make_source<pipe_read_source>},
          {"read_some", &make_source<read_some_source>},
          {"read_exact", &make_source<read_exact_source>},
          {"lines", &make_source<lines_source>},
          {"accept", &make_source<accept_source>},
          {"datagram", &make_source<datagram_source>}};
}

}  // namespace troupe::test
