#include "http/h2/framing/server_session.hpp"

#if !TROUPE_HAS_LIBNGHTTP2

namespace troupe::http::h2 {

std::unique_ptr<server_session> server_session::make(const rules&) { return nullptr; }
bool server_session::is_available() noexcept { return false; }

}  // namespace troupe::http::h2

#else

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "http/h2/framing/nghttp2_parts.hpp"

namespace troupe::http::h2 {
namespace {

class nghttp2_based final : public nghttp2_session_of<nghttp2_based, server_session> {
 public:
  explicit nghttp2_based(const rules& by);

  bool is_inside() const noexcept override { return watch_.is_inside(); }
  std::size_t window(std::int32_t stream) const noexcept override {
    const std::int32_t of_stream = nghttp2_session_get_stream_remote_window_size(session_, stream);
    const std::int32_t of_all = nghttp2_session_get_remote_window_size(session_);
    return static_cast<std::size_t>(std::max(std::min(of_stream, of_all), 0));
  }
  void respond(std::int32_t stream, int status, const header_lines& lines, bool has_body) override;
  void respond_meanwhile(std::int32_t stream, int status) override;
  void stop_upload(std::int32_t stream) override {
    if (stopping_.size() == stopping_max) return reset(stream, code::no_error);
    stopping_.push_back(stream);
    ping_text mark = stop_mark;
    for (std::size_t i = 0; i < 4; ++i)
      mark[4 + i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(stream) >> (24 - 8 * i));
    check_memory(nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, mark.data()));
    watch_.sent_data();  // the client may answer it
  }
  void announce_end() override {
    check_memory(nghttp2_submit_shutdown_notice(session_));
    check_memory(nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr));
  }
  void end() override {
    check_memory(nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                                       nghttp2_session_get_last_proc_stream_id(session_),
                                       NGHTTP2_NO_ERROR, nullptr, 0));
  }

 private:
  using callbacks = nghttp2_callbacks<nghttp2_based>;
  friend callbacks;
  // The text of a PING: "stop" and the number of a stream, or nothing.
  using ping_text = std::array<std::uint8_t, 8>;
  static constexpr ping_text stop_mark{'s', 't', 'o', 'p'};
  // A client that answers no PING holds the memory of so many requests, and not of all streams.
  static constexpr std::size_t stopping_max = 8;
  void on_frame(const nghttp2_frame& frame);
  void on_pong(const std::uint8_t* text);
  std::vector<std::int32_t> stopping_;  // streams that are reset when the client answers
  void on_sent(const nghttp2_frame& frame);
  void on_close(std::int32_t stream, std::uint32_t) {
    forget(stream);
    std::erase(stopping_, stream);
    events_->on_closed(stream, stream == reset_by_peer_);
  }
};

nghttp2_based::nghttp2_based(const rules& by)
    : nghttp2_session_of(by.limits, by.heads, watched::client) {
  if (nghttp2_session_server_new3(&session_, callbacks::all(), this, callbacks::options(),
                                  memory_.functions()) != 0)
    throw std::bad_alloc();
  const std::array<nghttp2_settings_entry, 5> ours{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, number(by.limits.streams)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, number(by.limits.stream_window)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, number(by.heads.bytes)},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  send_settings(ours);
}

void nghttp2_based::on_frame(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const std::int32_t stream = frame.hd.stream_id;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS: {
      if (!block_) break;
      head_block head = *std::exchange(block_, std::nullopt);
      if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) {
        if (ends) events_->on_end(stream, std::move(head));
      } else if (!head.finish()) {
        // nghttp2 counts it as no reset of ours
        check_memory(
            nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_PROTOCOL_ERROR));
      } else if (!events_->on_request(stream, std::move(head), ends)) {
        reset(stream, code::refused_stream);
      }
      break;
    }
    case NGHTTP2_DATA:
      if (ends) events_->on_end(stream, head_block());
      break;
    case NGHTTP2_RST_STREAM:
      reset_by_peer_ = stream;
      break;
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) on_pong(frame.ping.opaque_data);
      break;
    default:
      break;
  }
}

void nghttp2_based::on_pong(const std::uint8_t* text) {
  if (!std::equal(stop_mark.begin(), stop_mark.begin() + 4, text)) return events_->on_pong();
  std::uint32_t stream = 0;
  for (std::size_t i = 4; i < 8; ++i) stream = stream << 8 | text[i];
  const auto number = static_cast<std::int32_t>(stream);
  const bool is_open = nghttp2_session_get_stream_remote_close(session_, number) == 0;
  if (std::erase(stopping_, number) != 0 && is_open) reset(number, code::no_error);
}

void nghttp2_based::on_sent(const nghttp2_frame& frame) {
  const std::int32_t stream = frame.hd.stream_id;
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_DATA:
      watch_.sent_data();
      if (ends) events_->on_answered(stream);
      break;
    case NGHTTP2_HEADERS:
      if (ends) events_->on_answered(stream);
      break;
    case NGHTTP2_RST_STREAM:
      count_reset_sent(stream);
      break;
    case NGHTTP2_GOAWAY:
      note_goaway_sent(frame.goaway);
      break;
    default:
      break;
  }
}

void nghttp2_based::respond(std::int32_t stream, int status, const header_lines& lines,
                            bool has_body) {
  const std::string text = std::to_string(status);
  std::vector<nghttp2_nv> all = lines_of(lines);
  all.insert(all.begin(), line_of(":status", text));
  const nghttp2_data_provider body = callbacks::body();
  check_memory(nghttp2_submit_response(session_, stream, all.data(), all.size(),
                                       has_body ? &body : nullptr));
}

void nghttp2_based::respond_meanwhile(std::int32_t stream, int status) {
  const std::string number = std::to_string(status);
  const nghttp2_nv line = line_of(":status", number);
  check_memory(
      nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, &line, 1, nullptr));
}

}  // namespace

std::unique_ptr<server_session> server_session::make(const rules& by) {
  return std::make_unique<nghttp2_based>(by);
}
bool server_session::is_available() noexcept { return true; }

}  // namespace troupe::http::h2

#endif
