#include "fuzz/inflation.hpp"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "http/websocket/handshake/deflate.hpp"

namespace troupe::test {
namespace {

using http::inflate_result;

// How a message ended: its bytes, or why it was refused.
struct outcome {
  inflate_result how = inflate_result::whole;
  std::string text;
  bool operator==(const outcome&) const = default;
};

// Inflates in the simplest way: the whole message and the end of its flush at once, into as much
// space as it needs.
class reference {
 public:
  reference(int bits, bool keeps_context) : bits_(bits), keeps_context_(keeps_context) {}

  outcome inflate_message(std::string_view message, std::size_t bytes_max) {
    outcome made;
    if (message.empty()) return made;
    if (stream_ == nullptr) begin();
    made.how = run(message, made.text, bytes_max);
    if (made.how == inflate_result::whole && !is_between_blocks()) {
      made.how = run(std::string_view("\0\0\xff\xff", 4), made.text, bytes_max);
      if (made.how == inflate_result::whole && !is_between_blocks())
        made.how = inflate_result::malformed;
    }
    if (!keeps_context_) stream_.reset();
    return made;
  }

 private:
  struct ends {
    void operator()(z_stream* one) const noexcept {
      inflateEnd(one);
      delete one;
    }
  };
  void begin() {
    stream_.reset(new z_stream{});
    if (inflateInit2(stream_.get(), -bits_) != Z_OK) std::abort();
  }
  // In `data_type` the lower bits count the unused bits of the current byte; 128 means behind a
  // block.
  bool is_between_blocks() const noexcept { return stream_->data_type == 128; }
  // Offers space for one byte more than is allowed, so that the result does not depend on how often
  // there was no space.
  inflate_result run(std::string_view piece, std::string& to, std::size_t bytes_max) {
    const std::size_t before = to.size();
    to.resize(bytes_max + 1);
    stream_->next_in = reinterpret_cast<const Bytef*>(piece.data());
    stream_->avail_in = static_cast<uInt>(piece.size());
    stream_->next_out = reinterpret_cast<Bytef*>(to.data() + before);
    stream_->avail_out = static_cast<uInt>(to.size() - before);
    int said = Z_OK;
    do {
      said = inflate(stream_.get(), Z_SYNC_FLUSH);
      if (said == Z_STREAM_END && inflateResetKeep(stream_.get()) != Z_OK)
        return inflate_result::malformed;
    } while (said == Z_STREAM_END && stream_->avail_in > 0 && stream_->avail_out > 0);
    if (stream_->avail_out == 0) return inflate_result::too_large;
    to.resize(to.size() - stream_->avail_out);
    return said == Z_OK || said == Z_STREAM_END || said == Z_BUF_ERROR ? inflate_result::whole
                                                                       : inflate_result::malformed;
  }

  std::unique_ptr<z_stream, ends> stream_;
  const int bits_;
  const bool keeps_context_;
};

// Inflates by our code, in pieces. Returns nothing if that kept more than it may.
std::optional<outcome> inflate_in_pieces(http::message_inflater& by, std::string_view message,
                                         std::size_t piece_bytes, std::size_t bytes_max) {
  outcome made;
  while (!message.empty() && made.how == inflate_result::whole) {
    const std::string_view piece = message.substr(0, piece_bytes);
    message.remove_prefix(piece.size());
    made.how = by.add(piece, made.text, bytes_max);
    if (made.text.size() > bytes_max) return std::nullopt;
  }
  if (made.how == inflate_result::whole) made.how = by.finish(made.text, bytes_max);
  if (made.text.size() > bytes_max) return std::nullopt;
  return made;
}

std::string name_of(const outcome& one) {
  if (one.how == inflate_result::whole) return std::to_string(one.text.size()) + " bytes";
  return one.how == inflate_result::too_large ? "too large" : "malformed";
}

}  // namespace

std::string inflation_difference(std::string_view input) {
  if (input.size() < 3) return "";
  const auto byte = [input](std::size_t i) { return static_cast<unsigned char>(input[i]); };
  const int bits = 8 + byte(0) % 8;
  const bool keeps_context = (byte(0) & 8) != 0;
  const std::size_t piece_bytes = std::size_t{1} << (byte(0) >> 4);
  const std::size_t bytes_max = std::size_t{byte(1)} * byte(1);
  const std::string_view messages = input.substr(3);
  const std::size_t first_bytes = std::min<std::size_t>(byte(2), messages.size());

  http::message_inflater ours(bits, keeps_context);
  reference theirs(bits, keeps_context);
  for (const std::string_view message :
       {messages.substr(0, first_bytes), messages.substr(first_bytes)}) {
    const std::optional<outcome> got = inflate_in_pieces(ours, message, piece_bytes, bytes_max);
    if (!got) return "more is kept than a message may have";
    const outcome wanted = theirs.inflate_message(message, bytes_max);
    // If a message refers back farther than its window, zlib still reads it while it happens to
    // have those bytes.
    if (got->how == inflate_result::malformed && bits < 15) break;
    if (got->how != wanted.how ||
        (wanted.how == inflate_result::whole && got->text != wanted.text)) {
      return name_of(*got) + ", and by zlib alone " + name_of(wanted);
    }
    if (!keeps_context && got->how == inflate_result::whole && ours.holds_memory())
      return "memory is held without a context";
    if (got->how != inflate_result::whole) break;  // the connection would end here
  }
  return "";
}

}  // namespace troupe::test
