#include "http/h2/framing/client_session.hpp"

#if !TROUPE_HAS_LIBNGHTTP2

namespace troupe::http::h2 {

std::unique_ptr<client_session> client_session::make(const rules&) { return nullptr; }

}  // namespace troupe::http::h2

#else

#include <array>
#include <new>
#include <utility>

#include "http/h2/framing/nghttp2_parts.hpp"

namespace troupe::http::h2 {
namespace {

class nghttp2_client final : public nghttp2_session_of<nghttp2_client, client_session> {
 public:
  explicit nghttp2_client(const rules& by);

  bool has_to_send() const noexcept override { return nghttp2_session_want_write(session_) != 0; }
  bool takes_requests() const noexcept override {
    return broken_ == excess::none && nghttp2_session_check_request_allowed(session_) != 0;
  }
  std::size_t streams_max() const noexcept override {
    return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  }
  bool has_settings() const noexcept override { return has_settings_; }
  bool allows_connect() const noexcept override {
    return nghttp2_session_get_remote_settings(session_,
                                               NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
  }
  std::int32_t request(const header_lines& lines, bool has_body) override;

 private:
  using callbacks = nghttp2_callbacks<nghttp2_client>;
  friend callbacks;
  void on_frame(const nghttp2_frame& frame);
  void on_sent(const nghttp2_frame& frame);
  void on_close(std::int32_t stream, std::uint32_t why);
  bool has_settings_ = false;
};

nghttp2_client::nghttp2_client(const rules& by)
    : nghttp2_session_of(by.limits, by.heads, watched::server) {
  if (nghttp2_session_client_new3(&session_, callbacks::all(), this, callbacks::options(),
                                  memory_.functions()) != 0)
    throw std::bad_alloc();
  const std::array<nghttp2_settings_entry, 4> ours{{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, number(by.limits.stream_window)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, number(by.heads.bytes)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  send_settings(ours);
}

void nghttp2_client::on_frame(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const std::int32_t stream = frame.hd.stream_id;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS: {
      if (!block_) break;
      head_block head = *std::exchange(block_, std::nullopt);
      if (head.status() != 0) {
        events_->on_head(stream, std::move(head), ends);
      } else if (ends) {
        events_->on_end(stream, std::move(head));
      }
      break;
    }
    case NGHTTP2_DATA:
      if (ends) events_->on_end(stream, head_block());
      break;
    case NGHTTP2_RST_STREAM:
      reset_by_peer_ = stream;
      break;
    case NGHTTP2_SETTINGS:
      has_settings_ = has_settings_ || (frame.hd.flags & NGHTTP2_FLAG_ACK) == 0;
      break;
    default:
      break;
  }
}

void nghttp2_client::on_close(std::int32_t stream, std::uint32_t why) {
  const bool is_ours = forget(stream);
  watch_.closed_stream();
  stream_end how = stream_end::complete;
  if (why == NGHTTP2_REFUSED_STREAM && !is_ours) {
    how = stream_end::refused;
    if (stream != reset_by_peer_) why = NGHTTP2_NO_ERROR;  // by GOAWAY
  } else if (stream == reset_by_peer_) {
    how = stream_end::reset;
  } else if (why != NGHTTP2_NO_ERROR && !is_ours) {
    how = stream_end::malformed;
  }
  events_->on_closed(stream, how, why);
}

void nghttp2_client::on_sent(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      events_->on_asked(frame.hd.stream_id);
      end_if_early(frame.hd.stream_id);
      break;
    case NGHTTP2_DATA:
      watch_.sent_data();
      break;
    case NGHTTP2_RST_STREAM:
      count_reset_sent(frame.hd.stream_id);
      break;
    case NGHTTP2_GOAWAY:
      note_goaway_sent(frame.goaway);
      break;
    default:
      break;
  }
}

std::int32_t nghttp2_client::request(const header_lines& lines, bool has_body) {
  const std::vector<nghttp2_nv> all = lines_of(lines);
  const nghttp2_data_provider body = callbacks::body();
  const std::int32_t stream = nghttp2_submit_request(session_, nullptr, all.data(), all.size(),
                                                     has_body ? &body : nullptr, nullptr);
  if (stream == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  if (stream < 0) return 0;
  watch_.opened_stream();
  return stream;
}

}  // namespace

std::unique_ptr<client_session> client_session::make(const rules& by) {
  return std::make_unique<nghttp2_client>(by);
}

}  // namespace troupe::http::h2

#endif
