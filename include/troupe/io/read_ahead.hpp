// read_ahead: the bytes that a reader of a borrowed stream has read and not yet returned to its
// user. For the library's own use: streams::lines and similar functions.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "troupe/io/stream.hpp"

namespace troupe::io {

// While the reader waits for more, these bytes lie in the stream, among those that were put back
// (src/io/buffers/kept_input.hpp), and the reader reads behind them. The next read of the stream
// gets them, even while the end of a dropped reader's wait is still on its way
// (docs/protocols/given_up_waits.md). A stream that is closed loses them.
//
// Thread: the one that reads the stream. Lifetime: the stream may be closed or moved meanwhile; a
// reader that outlives it runs within a turn of its runtime.
class read_ahead {
 public:
  // In operation::behind: marks the reads of such readers.
  static constexpr std::size_t is_ahead = ~(SIZE_MAX >> 1);

  read_ahead() = default;
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;

  // Whether the read of another reader, which was dropped, has not ended yet. It may have bytes
  // that precede all others: wait for it before the first read.
  static bool must_wait(const stream& from) noexcept;
  // Reads behind the bytes that lie in the stream. Call see() when it has ended.
  awaitable<read_job> read(stream& from, std::span<char> to) noexcept {
    return awaitable<read_job>(std::in_place, from.descriptor_, from.kind_,
                               std::as_writable_bytes(to), false, held_ | is_ahead);
  }
  void see(const stream& from);
  // Adds bytes to those that lie in the stream. Throws std::bad_alloc.
  void hold(std::string_view bytes);
  // Takes them all out of the stream.
  void take() noexcept;
  // Puts bytes behind those that lie in the stream: the reader ends. Without memory they are lost.
  void give_back(std::string_view bytes) noexcept;

 private:
  void insert(std::string_view bytes);
  slot* at_ = nullptr;           // null before the first read
  std::shared_ptr<void> keeps_;  // the reactor, whose memory the slot is
  std::size_t held_ = 0;
  std::uint16_t generation_ = 0;
};

}  // namespace troupe::io
