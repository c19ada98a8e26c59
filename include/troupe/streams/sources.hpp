// Streams from outside sources: lines, frames and blocks of bytes, and answers of actors.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <chrono>
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
#include "troupe/io/read_ahead.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/sequence.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

// A line or a frame is longer than the limit. The stream has ended.
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

[[noreturn]] void throw_too_long(const char* unit, std::size_t most);
[[noreturn]] void throw_cut_frame(std::size_t received, std::size_t announced);

// Received bytes; a part of them was taken.
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

// An input that is borrowed, and whose type takes back bytes that were read ahead.
template <class Input>
concept takes_back = std::is_lvalue_reference_v<Input> && requires {
  typename std::remove_reference_t<Input>::read_ahead;
};

// The bytes that were read from an input and not yielded. When the reader is dropped, they go back
// to the input if its type takes bytes back; otherwise they are lost.
template <class Input>
class not_given {
 public:
  not_given() = default;
  explicit not_given(const bytes_read&) noexcept {}
  auto read(Input& from, std::span<char> to) { return from.read(to); }
  void see(const Input&) noexcept {}
  void hold(std::string_view) noexcept {}
  void give(const std::string&, std::string_view = {}, std::string_view = {}) noexcept {}
};
template <takes_back Input>
class not_given<Input> {
 public:
  not_given() = default;
  explicit not_given(const bytes_read& bytes) noexcept : bytes_(&bytes) {}
  not_given(const not_given&) = delete;
  not_given& operator=(const not_given&) = delete;
  ~not_given() {
    // each part in front of the one before
    if (bytes_ != nullptr) ahead_.give_back(bytes_->rest());
    if (side_ == nullptr || !side_->keeps_value()) return;
    ahead_.give_back(behind_);
    ahead_.give_back(*value_);
    ahead_.give_back(before_);
  }
  // The coroutine that reads belongs to an async generator.
  void belongs_to(tasks::coroutine& reader) noexcept {
    side_ = static_cast<tasks::side_call*>(reader.call);
  }
  bool must_wait(Input from) const noexcept { return ahead_.must_wait(from); }
  auto read(Input from, std::span<char> to) { return ahead_.read(from, to); }
  void see(Input from) { ahead_.see(from); }
  // These bytes, which came last, belong to a value that is not complete.
  void hold(std::string_view bytes) { ahead_.hold(bytes); }
  // The value is complete: it lay between these bytes in the input.
  void give(const std::string& value, std::string_view before = {},
            std::string_view behind = {}) noexcept {
    ahead_.take();
    value_ = &value;
    before_ = before;
    behind_ = behind;
  }

 private:
  const bytes_read* const bytes_ = nullptr;
  const tasks::side_call* side_ = nullptr;
  const std::string* value_ = nullptr;
  std::string_view before_, behind_;
  typename std::remove_reference_t<Input>::read_ahead ahead_;
};

// A reader that was dropped while it waited may still hold bytes that precede all others: its wait
// ends a little later.
template <takes_back Input>
task<> await_last_reader(Input from) {
  constexpr int turns = 16, sleeps = 100;
  using ahead = typename std::remove_reference_t<Input>::read_ahead;
  for (int i = 0; i < turns && ahead::must_wait(from); ++i) co_await yield();
  for (int i = 0; i < sleeps && ahead::must_wait(from); ++i)
    co_await sleep_for(std::chrono::milliseconds(1));
}

template <class Input>
async_generator<std::string> lines(Input from, std::size_t most) {
  bytes_read bytes(block_bytes);
  std::string line;
  not_given<Input> ahead(bytes);
  if constexpr (takes_back<Input>) {
    ahead.belongs_to(co_await tasks::this_coroutine());
    if (ahead.must_wait(from)) co_await await_last_reader<Input>(from);
  }
  bool ended = false;
  while (!ended) {
    const std::size_t count = co_await ahead.read(from, bytes.room());
    ahead.see(from);
    bytes.add(count);
    ended = count == 0;
    for (;;) {
      const std::string_view rest = bytes.rest();
      const std::size_t end = rest.find('\n');
      const bool whole = end != std::string_view::npos;
      if (line.size() + (whole ? end : rest.size()) > most) throw_too_long("a line", most);
      line += rest.substr(0, end);
      if (!whole) ahead.hold(rest);
      bytes.take(whole ? end + 1 : rest.size());
      if (!whole) break;
      const bool has_return = line.ends_with('\r');
      if (has_return) line.pop_back();
      ahead.give(line, {}, has_return ? "\r\n" : "\n");
      co_yield std::move(line);
      line.clear();
    }
  }
  if (line.empty()) co_return;
  ahead.give(line);
  co_yield std::move(line);
}

std::uint32_t length_of(const std::array<char, 4>& head) noexcept;

template <class Input>
async_generator<std::string> frames(Input from, std::size_t most) {
  bytes_read bytes(block_bytes);
  std::array<char, 4> head{};
  std::string body;
  not_given<Input> ahead(bytes);
  if constexpr (takes_back<Input>) {
    ahead.belongs_to(co_await tasks::this_coroutine());
    if (ahead.must_wait(from)) co_await await_last_reader<Input>(from);
  }
  std::size_t have = 0;
  bool ended = false;
  while (!ended) {
    const std::size_t count = co_await ahead.read(from, bytes.room());
    ahead.see(from);
    bytes.add(count);
    ended = count == 0;
    for (;;) {
      const std::string_view begin = bytes.rest();
      for (; have < head.size() && !bytes.rest().empty(); bytes.take(1))
        head[have++] = bytes.rest().front();
      if (have == head.size()) {
        const std::size_t length = length_of(head);
        if (length > most) {
          ahead.hold(begin.substr(0, begin.size() - bytes.rest().size()));
          throw_too_long("a frame", most);
        }
        const std::string_view part = bytes.rest().substr(0, length - body.size());
        body += part;
        bytes.take(part.size());
      }
      if (have < head.size() || body.size() < length_of(head)) {
        ahead.hold(begin);
        break;
      }
      have = 0;
      ahead.give(body, {head.data(), head.size()});
      co_yield std::move(body);
      body.clear();
    }
  }
  if (have != 0) throw_cut_frame(body.size(), have < head.size() ? 0 : length_of(head));
}

template <class Input>
async_generator<std::string> blocks(Input from, std::size_t most) {
  std::string block;
  not_given<Input> ahead;
  if constexpr (takes_back<Input>) {
    ahead.belongs_to(co_await tasks::this_coroutine());
    if (ahead.must_wait(from)) co_await await_last_reader<Input>(from);
  }
  for (;;) {
    block.assign(most, '\0');
    const std::size_t count = co_await ahead.read(from, std::span<char>(block));
    ahead.see(from);
    if (count == 0) break;
    block.resize(count);
    ahead.give(block);
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
    auto answer = co_await std::move(later);
    if constexpr (answer_of<Answer>::ends) {
      if (!answer) break;
      co_yield std::move(*answer);
    } else {
      co_yield std::move(answer);
    }
  }
}

}  // namespace detail

// The lines of an input, without their ends ("\n" or "\r\n"): of a tcp_stream, unix_stream,
// pipe_stream, file, TLS stream. A last line without an end counts. An input that is an lvalue is
// read in place and must live as long as the stream; an input that is moved in belongs to the
// stream. Limits: reads 64 KiB at a time; throws frame_too_long for a line of more than `most`
// bytes. When the stream is dropped, the bytes that it has read and not yielded go back to an
// lvalue input that is a stream or a TLS stream. A new lines(), frames() or blocks() over the input
// gets them first; the program's own read gets them once the dropped wait has ended, a turn later.
// Until then, and while a next() is pending or was given up, no other code may read the input. The
// bytes of a file are lost.
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
// The bytes as they arrive, in blocks of at most `most`. Otherwise as lines(), but it yields all
// bytes that it has read.
template <class Input>
async_generator<std::string> blocks(Input&& from, std::size_t most = block_bytes) {
  return detail::blocks<Input>(std::forward<Input>(from), most);
}

// The answers of an actor: asks it again for each value, with the same arguments. If the method
// returns a std::optional, the stream ends at an empty one; otherwise it never ends.
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
