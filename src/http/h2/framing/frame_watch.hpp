// frame_watch: reads the heads of the frames that the peer sends, a client or a server of HTTP/2,
// before nghttp2 sees them, and finds the frame with which the peer goes beyond a limit. It does no
// I/O.
//
// nghttp2 1.52 has no limit for most kinds of frames, and closes a connection with too many
// CONTINUATION frames without a word.
// Rejected: nghttp2's callback for each frame, which comes when nghttp2 has answered the frame or
// has acted on it.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "troupe/http/options.hpp"

namespace troupe::http::h2 {

// The limit that a peer has exceeded.
enum class excess : std::uint8_t {
  none,
  header_list,
  resets,
  continuations,
  settings,
  pings,
  window_updates,
  priorities,
  empty_data,
  other_frames,
  unread_answers,
  protocol_error,  // an error of the connection
  count_of_excesses,
};

// The sender of the watched frames.
enum class watched : std::uint8_t { client, server };

class frame_watch {
 public:
  // `head_bytes`: of the fields of a request, or of an answer.
  frame_watch(const http2_limits& limits, std::size_t head_bytes,
              watched sender = watched::client) noexcept
      : limits_(limits),
        block_bytes_max_(head_bytes + head_bytes / 4 + 1024),
        is_server_(sender == watched::server),
        preface_left_(is_server_ ? 0 : preface_bytes) {}

  // The next bytes of the peer. Returns how many of them nghttp2 may have: all, unless found()
  // reports too much of something. Then they end before that frame.
  std::size_t look(std::string_view bytes, std::int64_t now_ns) noexcept;
  excess found() const noexcept { return found_; }
  // Whether a frame other than DATA, or the head of a request, has begun and not ended.
  bool is_inside() const noexcept {
    return block_open_ || head_bytes_ != 0 || preface_left_ != 0 || (left_ != 0 && type_ != data);
  }

  // This end has reset a stream, for an error of the peer.
  void count_reset(std::int64_t now_ns) noexcept;
  // This end has opened a stream, as clients do; and it exists no more.
  void opened_stream() noexcept {
    ++counts_.streams;
    ++open_;
  }
  void closed_stream() noexcept {
    ++counts_.closed;
    if (open_ != 0) --open_;
  }
  void sent_data() noexcept { ++counts_.data_sent; }

 private:
  enum type : std::uint8_t {
    data = 0,
    headers = 1,
    priority = 2,
    rst_stream = 3,
    settings = 4,
    push_promise = 5,
    ping = 6,
    goaway = 7,
    window_update = 8,
    continuation = 9,
    priority_update = 16,
  };
  static constexpr std::size_t frame_head_bytes = 9, preface_bytes = 24;
  static constexpr std::uint8_t end_stream = 1, end_headers = 4, padded = 8;

  void begin_frame() noexcept;
  void begin_headers() noexcept;
  void begin_payload(std::string_view bytes) noexcept;
  void note_stream(std::uint32_t number) noexcept;
  void count(std::size_t& counter, std::size_t most, excess exceeded) noexcept {
    if (++counter > most) found_ = exceeded;
  }
  void begin_span(std::int64_t now_ns) noexcept;

  struct counts {
    std::size_t resets = 0, settings = 0, pings = 0, window_updates = 0, priorities = 0,
                empty_data = 0, other_frames = 0, heads = 0;
    // The counts that allow for more of the others: DATA frames that this end has sent, streams.
    std::size_t data_sent = 0, streams = 0, closed = 0;
  };
  struct allowance {
    std::size_t data_sent = 0, streams = 0, closed = 0;
  };
  std::size_t data_sent() const noexcept { return counts_.data_sent + carried_.data_sent; }
  std::size_t streams() const noexcept { return counts_.streams + carried_.streams; }

  // A server may answer, and reset, each stream that this end has opened, however old it is. It
  // resets one with NO_ERROR when the answer is complete and the request is not (RFC 9113, 8.1), as
  // at the end of a WebSocket; that may come when this end has closed the stream.
  std::size_t own_streams() const noexcept { return open_ + counts_.closed + carried_.closed; }
  std::size_t resets_max() const noexcept {
    return limits_.resets + (is_server_ ? own_streams() : 0);
  }

  const http2_limits limits_;
  const std::size_t block_bytes_max_;
  const bool is_server_;
  excess found_ = excess::none;
  std::uint8_t type_ = 0, flags_ = 0;
  std::size_t preface_left_;
  std::array<unsigned char, frame_head_bytes> head_{};
  std::size_t head_bytes_ = 0;  // of the frame's head so far
  std::size_t left_ = 0;        // of the frame's payload
  std::size_t length_ = 0;
  // How many of the payload's first bytes are still to be read: the padding length of DATA (one
  // byte), or the stream number of PRIORITY_UPDATE (four bytes).
  std::size_t bytes_due_ = 0;
  std::uint32_t named_stream_ = 0;
  bool block_open_ = false;                          // CONTINUATION has to follow
  std::size_t block_bytes_ = 0, continuations_ = 0;  // of the head that is being read
  // Numbers of streams rise: those before `next_stream_` that the client has left out can no longer
  // be used. Clients leave out none, as a rule; the last ranges are remembered.
  struct left_out {
    std::uint32_t from = 0, to = 0;  // without `to`
  };
  std::uint32_t next_stream_ = 1;
  std::array<left_out, 8> left_out_{};
  std::size_t left_out_at_ = 0;
  std::int64_t span_end_ns_ = 0;
  std::size_t open_ = 0;  // streams that this end has opened
  counts counts_;
  allowance carried_;  // of the span before
};

}  // namespace troupe::http::h2
