#include "http/websocket/handshake/deflate.hpp"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "troupe/base/error.hpp"

namespace troupe::http {

namespace {

// ends each flush; messages are sent without it
constexpr std::string_view tail("\0\0\xff\xff", 4);
constexpr std::size_t bytes_at_once = std::size_t{1} << 30;  // zlib counts in 32 bits

// zlib reports a null pointer as Z_MEM_ERROR.
void* take(void*, unsigned count, unsigned bytes) {
  return ::operator new (std::size_t{count} * bytes, std::nothrow);
}
void give_back(void*, void* block) { ::operator delete(block); }

// A value of z_stream::data_type between two blocks. Its lower bits count the unused bits of a
// byte.
constexpr int between_blocks = 128;

const Bytef* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const Bytef*>(text.data());
}

template <class Stream>
bool make(Stream& stream) noexcept {
  stream.reset(new (std::nothrow) z_stream{});
  if (stream == nullptr) return false;
  stream->zalloc = take;
  stream->zfree = give_back;
  return true;
}

}  // namespace

void end_deflate::operator()(z_stream_s* ended) const noexcept {
  deflateEnd(ended);
  delete ended;
}
void end_inflate::operator()(z_stream_s* ended) const noexcept {
  inflateEnd(ended);
  delete ended;
}

bool message_deflater::begin() noexcept {
  if (stream_ != nullptr) return true;
  if (!make(stream_)) return false;
  const int said =
      deflateInit2(stream_.get(), level_, Z_DEFLATED, -bits_, memory_level_, Z_DEFAULT_STRATEGY);
  if (said != Z_OK) stream_.reset();
  return said == Z_OK;
}

std::string message_deflater::compress(std::string_view message) {
  // zlib produces nothing for a flush that directly follows a flush.
  if (message.empty() || !begin()) return {};
  std::string compressed(message.size() / 2 + 64, '\0');
  std::size_t done = 0;
  std::string_view left = message;
  for (bool flushed = false; !flushed;) {
    const std::string_view piece = left.substr(0, bytes_at_once);
    left.remove_prefix(piece.size());
    stream_->next_in = bytes_of(piece);
    stream_->avail_in = static_cast<uInt>(piece.size());
    const int flush = left.empty() ? Z_SYNC_FLUSH : Z_NO_FLUSH;
    for (;;) {
      if (done == compressed.size()) compressed.resize(2 * compressed.size());
      const std::size_t room = std::min(compressed.size() - done, bytes_at_once);
      stream_->next_out = reinterpret_cast<Bytef*>(compressed.data() + done);
      stream_->avail_out = static_cast<uInt>(room);
      const int said = deflate(stream_.get(), flush);
      if (said == Z_STREAM_ERROR) throw error("troupe: http: zlib cannot compress a message");
      done += room - stream_->avail_out;
      // a flush is complete only when zlib left some of the space unused
      if (stream_->avail_out > 0) break;
    }
    flushed = flush == Z_SYNC_FLUSH;
  }
  compressed.resize(done - tail.size());
  if (keeps_context_) return compressed;
  stream_.reset();
  return compressed.size() < message.size() ? compressed : std::string();
}

void message_deflater::forget() noexcept {
  if (stream_ != nullptr && deflateReset(stream_.get()) != Z_OK) stream_.reset();
}

inflate_result message_inflater::run(std::string_view piece, std::string& output,
                                     std::size_t bytes_max) {
  if (stream_ == nullptr) {
    if (!make(stream_)) throw std::bad_alloc();
    if (inflateInit2(stream_.get(), -bits_) != Z_OK) {
      stream_.reset();
      throw std::bad_alloc();
    }
  }
  std::array<char, 16 * 1024> room;
  stream_->next_in = bytes_of(piece);
  stream_->avail_in = static_cast<uInt>(piece.size());
  for (;;) {
    stream_->next_out = reinterpret_cast<Bytef*>(room.data());
    stream_->avail_out = static_cast<uInt>(room.size());
    const int said = inflate(stream_.get(), Z_SYNC_FLUSH);
    if (said == Z_MEM_ERROR) throw std::bad_alloc();
    const std::size_t bytes = room.size() - stream_->avail_out;
    if (bytes > bytes_max - output.size()) return inflate_result::too_large;
    output.append(room.data(), bytes);
    if (said == Z_STREAM_END) {
      // The block was marked as the last one. Another block may follow and refer to bytes before
      // it: the window has to stay.
      // Rejected: copying the window out and in, because a peer could make us spend 64 KiB of
      // copying on every two bytes that it sends.
      if (inflateResetKeep(stream_.get()) != Z_OK) return inflate_result::malformed;
      if (stream_->avail_in == 0) return inflate_result::whole;
      continue;
    }
    if (said != Z_OK && said != Z_BUF_ERROR) return inflate_result::malformed;
    // If zlib were called without input, it would forget that it is between two blocks.
    if (stream_->avail_in == 0 && stream_->data_type == between_blocks)
      return inflate_result::whole;
    if (stream_->avail_out > 0) return inflate_result::whole;  // zlib has taken all of the piece
  }
}

inflate_result message_inflater::add(std::string_view piece, std::string& to,
                                     std::size_t bytes_max) {
  while (!piece.empty()) {
    is_empty_ = false;
    const std::string_view part = piece.substr(0, bytes_at_once);
    piece.remove_prefix(part.size());
    const inflate_result how = run(part, to, bytes_max);
    if (how != inflate_result::whole) return how;
  }
  return inflate_result::whole;
}

inflate_result message_inflater::finish(std::string& to, std::size_t bytes_max) {
  inflate_result how = inflate_result::whole;
  // A peer may send its flush with the tail. Then the message ends with a complete block, and the
  // tail would begin a new block.
  if (!is_empty_ && stream_->data_type != between_blocks) {
    how = run(tail, to, bytes_max);
    if (how == inflate_result::whole && stream_->data_type != between_blocks)
      how = inflate_result::malformed;
  }
  is_empty_ = true;
  if (!keeps_context_) stream_.reset();
  return how;
}

}  // namespace troupe::http
