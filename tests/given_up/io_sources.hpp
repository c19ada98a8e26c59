// The same as sources.hpp, of what the system gives. A number is a byte, a line or a datagram.
#pragma once

#include <unistd.h>

#include <atomic>

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

// A number is a text, which a stream cuts out of the bytes.
template <auto Cut, auto Encode>
class cut_source final : public source {
 public:
  void start(int count) override {
    auto [from, to] = pipe_stream::make();
    all_ = Cut(std::move(from));
    spawn(fill(std::move(to), count));
  }
  task<std::optional<int>> next() override {
    const auto text = co_await all_.next();
    co_return text ? std::optional(std::stoi(*text)) : std::nullopt;
  }

 private:
  static task<> fill(pipe_stream to, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string text = Encode(std::to_string(i));
      co_await to.write_all(std::string_view(text));
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  async_generator<std::string> all_;
};
inline async_generator<std::string> as_lines(pipe_stream from) {
  return streams::lines(std::move(from));
}
inline std::string with_line_end(const std::string& text) { return text + '\n'; }
inline async_generator<std::string> as_frames(pipe_stream from) {
  return streams::frames(std::move(from));
}
inline std::string with_length_before(const std::string& text) {
  return std::string("\0\0\0", 3) + static_cast<char>(text.size()) + text;
}
using lines_source = cut_source<&as_lines, &with_line_end>;
using frames_source = cut_source<&as_frames, &with_length_before>;

// The same of a stream that is borrowed for each number: the pipe is dropped with its task, and the
// stream has the bytes again that the pipe had read ahead.
template <auto Cut, auto Encode>
class borrowed_source final : public source {
 public:
  void start(int count) override {
    auto [from, to] = pipe_stream::make();
    from_ = std::move(from);
    spawn(fill(std::move(to), count));
  }
  task<std::optional<int>> next() override {
    auto texts = Cut(from_) | streams::map([](std::string text) { return std::stoi(text); }) |
                 streams::take(1);
    co_return co_await texts.next();
  }

 private:
  // Some numbers come together, and some in two parts.
  static task<> fill(pipe_stream to, int count) {
    std::string piece;
    for (int i = 0; i < count; ++i) {
      piece += Encode(std::to_string(i));
      const bool waits = pauses(i);
      if (!waits) continue;
      const std::size_t part = piece.size() - static_cast<std::size_t>(i % 3);
      co_await to.write_all(std::string_view(piece).substr(0, part));
      piece.erase(0, part);
      co_await yield();
    }
    co_await to.write_all(piece);
  }
  pipe_stream from_;
};
inline async_generator<std::string> borrowed_lines(pipe_stream& from) {
  return streams::lines(from);
}
inline async_generator<std::string> borrowed_frames(pipe_stream& from) {
  return streams::frames(from);
}
inline std::string with_return(const std::string& text) { return text + "\r\n"; }
using borrowed_lines_source = borrowed_source<&borrowed_lines, &with_return>;
using borrowed_frames_source = borrowed_source<&borrowed_frames, &with_length_before>;

class borrowed_blocks_source final : public bytes_source {
 public:
  task<std::optional<int>> next() override {
    if (has_rest()) co_return take_rest();
    auto blocks = streams::blocks(from_, 5);
    auto block = co_await blocks.next();
    if (!block) co_return std::nullopt;
    rest_ = std::move(*block);
    co_return take_rest();
  }
};

class blocks_source final : public bytes_source {
 public:
  void start(int count) override {
    bytes_source::start(count);
    all_ = streams::blocks(std::move(from_), 5);
  }
  task<std::optional<int>> next() override {
    if (has_rest()) co_return take_rest();
    auto block = co_await all_.next();
    if (!block) co_return std::nullopt;
    rest_ = std::move(*block);
    co_return take_rest();
  }

 private:
  async_generator<std::string> all_;
};

// A number is a connection.
template <class Kind>
class accept_source final : public source {
 public:
  void start(int count) override {
    count_ = std::min(count, connections_max);
    listens_.start();
    spawn(fill(listens_.address(), count_));
  }
  task<std::optional<int>> next() override {
    if (accepted_ == count_) co_return std::nullopt;
    const auto peer = co_await listens_.accept();
    co_return accepted_++;
  }
  static constexpr int connections_max = 100;

 private:
  template <class Address>
  static task<> fill(Address at, int count) {
    for (int i = 0; i < count; ++i) {
      auto connects = Kind::connect(at);
      const auto to = co_await std::move(connects);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  Kind listens_;
  int count_ = 0, accepted_ = 0;
};

struct of_tcp {
  void start() { from = tcp_listener::listen(endpoint::loopback(0)); }
  endpoint address() const { return from.local(); }
  static auto connect(endpoint at) { return tcp_stream::connect(at); }
  auto accept() { return from.accept(); }
  tcp_listener from;
};
struct of_tcp_when_able : of_tcp {
  auto accept() { return from.accept_when_able(); }
};
struct of_unix {
  void start() {
    static std::atomic<int> listeners = 0;
    path = std::string(1, '\0') + "troupe-given-up-" + std::to_string(::getpid()) + "-" +
           std::to_string(++listeners);
    from = unix_listener::listen(path);
  }
  std::string address() const { return path; }
  static task<unix_stream> connect(std::string at) { co_return unix_stream::connect(at); }
  auto accept() { return from.accept(); }
  std::string path;
  unix_listener from;
};
struct of_unix_when_able : of_unix {
  auto accept() { return from.accept_when_able(); }
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

class unix_datagram_source final : public source {
 public:
  void start(int count) override {
    static std::atomic<int> sockets = 0;
    const std::string path = std::string(1, '\0') + "troupe-given-up-datagrams-" +
                             std::to_string(::getpid()) + "-" + std::to_string(++sockets);
    count_ = count;
    at_ = unix_datagram::bind(path);
    spawn(fill(path, count));
  }
  task<std::optional<int>> next() override {
    if (given_ == count_) co_return std::nullopt;
    int number = -1;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    co_await at_.receive(bytes);
    co_return number == given_ ? given_++ : -1;
  }

 private:
  static task<> fill(std::string path, int count) {
    unix_datagram to = unix_datagram::connect(path);
    for (int i = 0; i < count; ++i) {
      const std::string_view bytes(reinterpret_cast<const char*>(&i), sizeof i);
      co_await to.send(bytes);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  unix_datagram at_;
  int count_ = 0, given_ = 0;
};

inline std::vector<named_source> io_sources() {
  return {{"tcp_read", &make_source<tcp_read_source>},
          {"pipe_read", &make_source<pipe_read_source>},
          {"read_some", &make_source<read_some_source>},
          {"read_exact", &make_source<read_exact_source>},
          {"lines", &make_source<lines_source>},
          {"accept", &make_source<accept_source<of_tcp>>},
          {"datagram", &make_source<datagram_source>}};
}

// Those that are like one of the others.
inline std::vector<named_source> other_io_sources() {
  return {{"frames", &make_source<frames_source>},
          {"blocks", &make_source<blocks_source>},
          {"borrowed_lines", &make_source<borrowed_lines_source>},
          {"borrowed_frames", &make_source<borrowed_frames_source>},
          {"borrowed_blocks", &make_source<borrowed_blocks_source>},
          {"accept_when_able", &make_source<accept_source<of_tcp_when_able>>},
          {"accept_unix", &make_source<accept_source<of_unix>>},
          {"accept_unix_when_able", &make_source<accept_source<of_unix_when_able>>},
          {"unix_datagram", &make_source<unix_datagram_source>}};
}

}  // namespace troupe::test
