// deflate: compresses and inflates messages for permessage-deflate (RFC 7692, 7.2), with zlib.
//
// Memory: a compressor takes 2^(window bits + 2) + 2^(memory level + 9) bytes, an inflater
// 2^(window bits) bytes and about 7 KiB. Both are allocated when the first message needs them.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "troupe/http/websocket.hpp"

struct z_stream_s;

namespace troupe::http {

struct end_deflate {
  void operator()(z_stream_s* ended) const noexcept;
};
struct end_inflate {
  void operator()(z_stream_s* ended) const noexcept;
};

class message_deflater {
 public:
  // `bits`: the window bits, from 9 to 15. `keeps_context`: a message may refer to earlier
  // messages.
  message_deflater(int bits, bool keeps_context, const websocket_deflate& how) noexcept
      : bits_(bits),
        level_(how.level),
        memory_level_(how.memory_level),
        keeps_context_(keeps_context) {}

  // Returns the compressed message, without the 00 00 FF FF at its end. Returns an empty string
  // when the message is to be sent uncompressed: there is no memory, or compressing would not make
  // it shorter and no later message refers to it.
  std::string compress(std::string_view message);
  // The last compressed message was not sent: later messages refer neither to it nor to earlier
  // ones.
  void forget() noexcept;
  // Gives the memory back. No message follows.
  void end() noexcept { stream_.reset(); }
  bool holds_memory() const noexcept { return stream_ != nullptr; }
  // As zlib's manual has it.
  std::size_t memory() const noexcept {
    return stream_ == nullptr
               ? 0
               : (std::size_t{1} << (bits_ + 2)) + (std::size_t{1} << (memory_level_ + 9));
  }

 private:
  bool begin() noexcept;
  std::unique_ptr<z_stream_s, end_deflate> stream_;
  const int bits_, level_, memory_level_;
  const bool keeps_context_;
};

enum class inflate_result : std::uint8_t { whole, too_large, malformed };

class message_inflater {
 public:
  // `bits`: the window bits, from 8 to 15.
  message_inflater(int bits, bool keeps_context) noexcept
      : bits_(bits), keeps_context_(keeps_context) {}

  // Inflates one piece of a message and appends the result to `to`. `to` never grows beyond
  // `bytes_max`, whatever the piece contains. Throws std::bad_alloc.
  inflate_result add(std::string_view piece, std::string& to, std::size_t bytes_max);
  // Call it when the message has no more pieces.
  inflate_result finish(std::string& to, std::size_t bytes_max);
  // Gives the memory back. No message follows.
  void end() noexcept { stream_.reset(); }
  bool holds_memory() const noexcept { return stream_ != nullptr; }
  std::size_t memory() const noexcept {
    return stream_ == nullptr ? 0 : (std::size_t{1} << bits_) + 7 * 1024;
  }

 private:
  inflate_result run(std::string_view piece, std::string& output, std::size_t bytes_max);
  std::unique_ptr<z_stream_s, end_inflate> stream_;
  const int bits_;
  const bool keeps_context_;
  bool is_empty_ = true;  // no byte of the current message has arrived
};

}  // namespace troupe::http
