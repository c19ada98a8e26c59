// deflate: messages compressed and inflated as permessage-deflate wants them (RFC 7692, 7.2), by
// zlib. Memory: a compressor has 2^(window bits + 2) + 2^(memory level + 9) bytes, an inflater
// 2^(window bits) and some 7 KiB; it is taken when the first message needs it. One thread at a
// time.
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
  void operator()(z_stream_s* one) const noexcept;
};
struct end_inflate {
  void operator()(z_stream_s* one) const noexcept;
};

class message_deflater {
 public:
  // `bits` from 9 to 15. `keeps_context`: a message may refer to those before it.
  message_deflater(int bits, bool keeps_context, const websocket_deflate& how) noexcept
      : bits_(bits),
        level_(how.level),
        memory_level_(how.memory_level),
        keeps_context_(keeps_context) {}

  // The message compressed, without the 00 00 FF FF at its end; empty when it is to be sent as it
  // is: there is no memory, or it would be no shorter and no later message refers to it.
  std::string compress(std::string_view message);
  // What was compressed last was not sent: no later message refers to it or to those before it.
  void forget() noexcept;
  bool holds_memory() const noexcept { return stream_ != nullptr; }

 private:
  bool begin() noexcept;
  std::unique_ptr<z_stream_s, end_deflate> stream_;
  const int bits_, level_, memory_level_;
  const bool keeps_context_;
};

enum class inflate_result : std::uint8_t { whole, too_large, malformed };

class message_inflater {
 public:
  // `bits` from 8 to 15.
  message_inflater(int bits, bool keeps_context) noexcept
      : bits_(bits), keeps_context_(keeps_context) {}

  // Appends what a piece of a message is inflated to. `to` never has more than `bytes_max`,
  // whatever the piece says. Throws std::bad_alloc.
  inflate_result add(std::string_view piece, std::string& to, std::size_t bytes_max);
  // The message has no more pieces.
  inflate_result finish(std::string& to, std::size_t bytes_max);
  bool holds_memory() const noexcept { return stream_ != nullptr; }

 private:
  inflate_result run(std::string_view piece, std::string& to, std::size_t bytes_max);
  std::unique_ptr<z_stream_s, end_inflate> stream_;
  const int bits_;
  const bool keeps_context_;
  bool is_empty_ = true;  // no byte of the message has come
};

}  // namespace troupe::http
