// Streams from outside sources: lines, frames and blocks of bytes, and answers of actors.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "troupe/actor/ref.hpp"
#include "troupe/base/error.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/stream.hpp"

namespace troupe {

// A line or a frame is longer than the limit that was given. The stream has ended.
//
// Example (declarations):
//     troupe::task<> listen(troupe::tcp_stream peer) {
//       try {
//         auto all = troupe::streams::lines(peer, 1'000);
//         while (auto line = co_await all.next()) std::cout << *line << '\n';
//       } catch (const troupe::frame_too_long& e) {
//         std::cerr << e.what() << '\n';
//       }
//     }
class frame_too_long : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::peer, verdict::effect::none, verdict::again::never};
  }
};

// The input of streams::frames ended in the middle of a frame.
class frame_cut : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::peer, verdict::effect::unknown, verdict::again::later};
  }
};

namespace streams {

// Defaults: bytes of one read, and the longest line and frame.
inline constexpr std::size_t block_bytes = 64 * 1024, line_bytes_max = 64 * 1024,
                             frame_bytes_max = 1024 * 1024;

namespace detail {

[[noreturn]] void throw_too_long(const char* what, std::size_t most);
[[noreturn]] void throw_cut_frame(std::size_t have, std::size_t of);

// Received bytes, of which a part was taken.
class bytes_read {
 public:
  explicit bytes_read(std::size_t bytes) : bytes_(bytes), data_(new char[bytes]) {}
  std::string_view rest() const noexcept { return {data_.get() + begin_, end_ - begin_}; }
  std::span<char> room() noexcept {
    begin_ = end_ = 0;
    return {data_.get(), bytes_};
  }
  void add(std::size_t count) noexcept { end_ += count; }
  void take(std::size_t count) noexcept { begin_ += count; }

 private:
  const std::size_t bytes_;
  std::size_t begin_ = 0, end_ = 0;
  const std::unique_ptr<char[]> data_;
};

template <class Input>
async_generator<std::string> lines(Input from, std::size_t most) {
  bytes_read bytes(block_bytes);
  std::string line;
  bool ended = false;
  while (!ended) {
    const std::size_t count = co_await from.read(bytes.room());
    bytes.add(count);
    ended = count == 0;
    for (;;) {
      const std::string_view rest = bytes.rest();
      const std::size_t end = rest.find('\n');
      const bool whole = end != std::string_view::npos;
      if (line.size() + (whole ? end : rest.size()) > most) throw_too_long("a line", most);
      line += rest.substr(0, end);
      bytes.take(whole ? end + 1 : rest.size());
      if (!whole) break;
      if (line.ends_with('\r')) line.pop_back();
      co_yield std::move(line);
      line.clear();
    }
  }
  if (!line.empty()) co_yield std::move(line);
}

std::uint32_t length_of(const std::array<char, 4>& head) noexcept;

template <class Input>
async_generator<std::string> frames(Input from, std::size_t most) {
  bytes_read bytes(block_bytes);
  std::array<char, 4> head{};
  std::string body;
  std::size_t have = 0;
  bool ended = false;
  while (!ended) {
    const std::size_t count = co_await from.read(bytes.room());
    bytes.add(count);
    ended = count == 0;
    for (;;) {
      for (; have < head.size() && !bytes.rest().empty(); bytes.take(1))
        head[have++] = bytes.rest().front();
      if (have < head.size()) break;
      const std::size_t length = length_of(head);
      if (length > most) throw_too_long("a frame", most);
      const std::string_view part = bytes.rest().substr(0, length - body.size());
      body += part;
      bytes.take(part.size());
      if (body.size() < length) break;
      have = 0;
      co_yield std::move(body);
      body.clear();
    }
  }
  if (have != 0) throw_cut_frame(body.size(), have < head.size() ? 0 : length_of(head));
}

template <class Input>
async_generator<std::string> blocks(Input from, std::size_t most) {
  for (;;) {
    std::string block(most, '\0');
    const std::size_t count = co_await from.read(std::span<char>(block));
    if (count == 0) break;
    block.resize(count);
    co_yield std::move(block);
  }
}

template <class Awaited>
struct answer_of {
  using type = Awaited;
  static constexpr bool ends = false;
};
template <class T>
struct answer_of<std::optional<T>> {
  using type = T;
  static constexpr bool ends = true;
};

template <auto Method, class T, class... Args,
          class Answer = awaited<decltype(std::declval<ref<T>&>().template ask<Method>(
              std::declval<const Args&>()...))>>
async_generator<typename answer_of<Answer>::type> answers(ref<T> from, Args... args) {
  for (;;) {
    auto later = from.template ask<Method>(std::as_const(args)...);
    auto one = co_await std::move(later);
    if constexpr (answer_of<Answer>::ends) {
      if (!one) break;
      co_yield std::move(*one);
    } else {
      co_yield std::move(one);
    }
  }
}

}  // namespace detail

// The lines of an input, without their ends ("\n" or "\r\n"): of a tcp_stream, unix_stream,
// pipe_stream, file, TLS stream. A last line without an end counts. An input with a name is read
// where it is and must live as long as the stream; one that is moved in belongs to the stream.
// Limits: reads 64 KiB at a time; throws frame_too_long for a line of more than `most` bytes. Bytes
// that were read and not given are lost with the stream.
template <class Input>
async_generator<std::string> lines(Input&& from, std::size_t most = line_bytes_max) {
  return detail::lines<Input>(std::forward<Input>(from), most);
}
// Frames: a length of 4 bytes, the most significant first, and then as many bytes. Throws
// frame_too_long for one of more than `most` bytes, and error if the input ends within a frame.
// Otherwise as lines().
template <class Input>
async_generator<std::string> frames(Input&& from, std::size_t most = frame_bytes_max) {
  return detail::frames<Input>(std::forward<Input>(from), most);
}
// The bytes as they come, in blocks of at most `most`. Otherwise as lines(), but nothing is read
// that is not given.
template <class Input>
async_generator<std::string> blocks(Input&& from, std::size_t most = block_bytes) {
  return detail::blocks<Input>(std::forward<Input>(from), most);
}

// The answers of an actor: asks it again for each value, with the same arguments. If the method
// gives a std::optional, the stream ends at an empty one; else it never ends.
//
// Example:
//     struct Queue {
//       int left = 3;
//       std::optional<int> take() { return left == 0 ? std::nullopt : std::optional(--left); }
//     };
//     troupe::task<> show(troupe::ref<Queue> queue) {
//       auto all = troupe::streams::answers<&Queue::take>(queue);
//       while (auto one = co_await all.next()) std::cout << *one << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show(rt.spawn<Queue>()));
//       rt.run();
//     }
template <auto Method, class T, class... Args>
auto answers(ref<T> from, Args... args) {
  return detail::answers<Method, T, Args...>(std::move(from), std::move(args)...);
}

}  // namespace streams

}  // namespace troupe
