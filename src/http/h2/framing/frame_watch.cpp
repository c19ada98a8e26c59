#include "http/h2/framing/frame_watch.hpp"

#include <algorithm>
#include <utility>

namespace troupe::http::h2 {
namespace {

constexpr std::size_t named_stream_bytes = 4;
constexpr std::size_t updates_per_data = 10, per_stream = 2;
// of one answer: interim heads, the final head, and the trailer
constexpr std::size_t heads_per_stream = 4;

}  // namespace

std::size_t frame_watch::look(std::string_view bytes, std::int64_t now_ns) noexcept {
  if (now_ns >= span_end_ns_) begin_span(now_ns);
  std::size_t at = std::min(preface_left_, bytes.size());
  preface_left_ -= at;
  while (at < bytes.size() && found_ == excess::none) {
    if (left_ != 0) {
      const std::size_t taken = std::min(left_, bytes.size() - at);
      if (bytes_due_ != 0) begin_payload(bytes.substr(at, taken));
      left_ -= taken;
      at += taken;
      continue;
    }
    const std::size_t taken = std::min(frame_head_bytes - head_bytes_, bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), taken,
                head_.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    head_bytes_ += taken;
    at += taken;
    if (head_bytes_ < frame_head_bytes) break;
    head_bytes_ = 0;
    begin_frame();
    if (found_ != excess::none) return at - taken;
  }
  return at;
}

// The first bytes of a payload, of which more may follow.
void frame_watch::begin_payload(std::string_view bytes) noexcept {
  if (type_ == data) {
    bytes_due_ = 0;
    const bool is_all_padding = static_cast<unsigned char>(bytes[0]) + std::size_t{1} >= length_;
    if (is_all_padding) count(counts_.empty_data, limits_.empty_data, excess::empty_data);
    return;
  }
  // PRIORITY_UPDATE names a stream; the first bit of the number is reserved.
  for (std::size_t i = 0; i < bytes.size() && bytes_due_ != 0; --bytes_due_, ++i)
    named_stream_ = named_stream_ << 8 | static_cast<unsigned char>(bytes[i]);
  constexpr std::uint32_t number_bits = 0x7fffffff;
  if (bytes_due_ == 0 && (named_stream_ & number_bits) == 0) found_ = excess::protocol_error;
}

void frame_watch::begin_span(std::int64_t now_ns) noexcept {
  // Frames that were sent in the last span may be answered in this one.
  const counts last_span = std::exchange(counts_, counts());
  carried_ = {last_span.data_sent, last_span.streams, last_span.closed};
  span_end_ns_ = limits_.span.after(std::chrono::nanoseconds(now_ns)).count();
}

void frame_watch::begin_frame() noexcept {
  length_ = left_ = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  type_ = head_[3];
  flags_ = head_[4];
  const bool has_end = (flags_ & end_stream) != 0;
  bytes_due_ = 0;
  switch (type_) {
    case data:
      if (has_end) break;
      if ((flags_ & padded) != 0 && length_ != 0) bytes_due_ = 1;
      if (length_ == 0) count(counts_.empty_data, limits_.empty_data, excess::empty_data);
      break;
    case headers:
      begin_headers();
      break;
    case continuation:
      block_open_ = (flags_ & end_headers) == 0;
      block_bytes_ += length_;
      count(continuations_, limits_.continuations, excess::continuations);
      if (found_ == excess::none && block_bytes_ > block_bytes_max_) found_ = excess::header_list;
      break;
    case rst_stream:
      count(counts_.resets, resets_max(), excess::resets);
      break;
    case push_promise:
      // The settings forbid it from the first byte on; nghttp2 waits for their answer.
      if (is_server_) {
        found_ = excess::protocol_error;
      } else {
        count(counts_.other_frames, limits_.other_frames, excess::other_frames);
      }
      break;
    case settings:
      count(counts_.settings, limits_.settings, excess::settings);
      break;
    case ping:
      count(counts_.pings, limits_.pings + data_sent(), excess::pings);
      break;
    case window_update:
      count(counts_.window_updates,
            limits_.window_updates + updates_per_data * data_sent() + per_stream * streams(),
            excess::window_updates);
      break;
    case priority_update:
      // RFC 9218, 7.1: servers send none. nghttp2 1.52 accepts them, even for stream 0.
      if (is_server_) {
        found_ = excess::protocol_error;
        break;
      }
      named_stream_ = 0;
      if (length_ >= named_stream_bytes) bytes_due_ = named_stream_bytes;
      [[fallthrough]];
    case priority:
      count(counts_.priorities, limits_.priorities + per_stream * streams(), excess::priorities);
      break;
    default:
      count(counts_.other_frames, limits_.other_frames, excess::other_frames);
      break;
  }
}

void frame_watch::begin_headers() noexcept {
  if (is_server_) {
    count(counts_.heads, limits_.other_frames + heads_per_stream * own_streams(),
          excess::other_frames);
  } else {
    ++counts_.streams;
    note_stream((std::uint32_t{head_[5]} & 0x7f) << 24 | std::uint32_t{head_[6]} << 16 |
                std::uint32_t{head_[7]} << 8 | head_[8]);
  }
  continuations_ = 0;
  block_bytes_ = length_;
  block_open_ = (flags_ & end_headers) == 0;
  if (found_ == excess::none && block_bytes_ > block_bytes_max_) found_ = excess::header_list;
}

// nghttp2 cannot distinguish HEADERS with a skipped stream number from the trailer of a stream that
// was just reset, and ignores both.
void frame_watch::note_stream(std::uint32_t number) noexcept {
  if (number >= next_stream_) {
    if (number > next_stream_)
      left_out_[left_out_at_++ % left_out_.size()] = {next_stream_, number};
    next_stream_ = number + 2;
    return;
  }
  const auto has_it = [number](const left_out& range) {
    return range.from <= number && number < range.to;
  };
  if (std::ranges::any_of(left_out_, has_it)) found_ = excess::protocol_error;
}

void frame_watch::count_reset(std::int64_t now_ns) noexcept {
  if (now_ns >= span_end_ns_) begin_span(now_ns);
  count(counts_.resets, resets_max(), excess::resets);
}

}  // namespace troupe::http::h2
