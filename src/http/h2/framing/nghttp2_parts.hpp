// nghttp2_parts: the code for nghttp2 that the sessions of both sides share. Include it in the
// source files of the two sessions only.
#pragma once

#if TROUPE_HAS_LIBNGHTTP2

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/invariant.hpp"
#include "http/h1/output.hpp"
#include "http/h2/framing/code.hpp"
#include "http/h2/framing/frame_watch.hpp"
#include "http/h2/framing/head_block.hpp"
#include "http/h2/framing/header_lines.hpp"
#include "http/h2/framing/nghttp2_memory.hpp"

namespace troupe::http::h2 {

inline std::string_view text_of(const std::uint8_t* at, std::size_t bytes) noexcept {
  return {reinterpret_cast<const char*>(at), bytes};
}

// A field to send. nghttp2 copies it, and does not write to it.
inline nghttp2_nv line_of(std::string_view name, std::string_view value) noexcept {
  const auto bytes_of = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

// Most errors mean that the stream no longer exists, of which the caller learns otherwise.
inline void check_memory(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

// Makes a call for nghttp2; no exception may leave a function that nghttp2 calls.
template <class Function>
int guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

struct nghttp2_deleted {
  void operator()(nghttp2_session_callbacks* deleted) const noexcept {
    nghttp2_session_callbacks_del(deleted);
  }
  void operator()(nghttp2_option* deleted) const noexcept { nghttp2_option_del(deleted); }
};

// The options of both sides: callers give the windows, and frame_watch counts the peer's frames.
inline std::unique_ptr<nghttp2_option, nghttp2_deleted> common_options() {
  nghttp2_option* to = nullptr;
  if (nghttp2_option_new(&to) != 0) throw std::bad_alloc();
  nghttp2_option_set_no_auto_window_update(to, 1);
  nghttp2_option_set_no_closed_streams(to, 1);
  nghttp2_option_set_stream_reset_rate_limit(to, UINT64_MAX / 2, UINT64_MAX / 2);
  nghttp2_option_set_max_continuations(to, SIZE_MAX / 2);
  nghttp2_option_set_builtin_recv_extension_type(to, NGHTTP2_PRIORITY_UPDATE);
  return std::unique_ptr<nghttp2_option, nghttp2_deleted>(to);
}

// The window of a connection limits nothing: its streams' windows do, so that a reader that is slow
// holds up its own stream only.
inline constexpr std::int32_t connection_window = 16 * 1024 * 1024;

// receive() or send() of a session is under way: its events may call neither.
class call_under_way {
 public:
  explicit call_under_way(bool& of_session) noexcept : of_session_(of_session) {
    TROUPE_INVARIANT(!of_session, "conversation.C2");
    of_session_ = true;
  }
  call_under_way(const call_under_way&) = delete;
  call_under_way& operator=(const call_under_way&) = delete;
  ~call_under_way() { of_session_ = false; }

 private:
  bool& of_session_;
};

// A session over nghttp2: the common part of both sides. `Interface`: session or client_session.
// `Self`: that side's class, which has on_frame(), on_sent(), on_close() and has_trailer_behind().
template <class Self, class Interface>
class nghttp2_session_of : public Interface {
 public:
  nghttp2_session_of(const http2_limits& limits, const block_limits& heads, watched sender)
      : heads_(heads), watch_(limits, heads.bytes, sender) {}
  ~nghttp2_session_of() override { nghttp2_session_del(session_); }

  void receive(std::string_view bytes, std::int64_t now_ns) override {
    now_ns_ = now_ns;
    if (broken_ != excess::none) return;
    const std::size_t may = watch_.look(bytes, now_ns);
    const call_under_way call(in_call_);
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), may);
    if (taken == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
    if (taken == NGHTTP2_ERR_FLOODED) {
      fail(excess::unread_answers, code::enhance_your_calm);
    } else if (taken < 0) {
      fail(excess::protocol_error, code::protocol_error);
    }
    check_watch();
  }
  bool send(output& frames, std::size_t most) override {
    const call_under_way call(in_call_);
    while (frames.size() < most) {
      const std::uint8_t* data = nullptr;
      const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
      if (bytes == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
      if (bytes <= 0) break;
      add_frame(frames, text_of(data, static_cast<std::size_t>(bytes)));
    }
    check_watch();
    return frames.size() >= most;
  }
  bool is_over() const noexcept override {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
  }
  excess broken() const noexcept override { return broken_; }
  std::size_t memory() const noexcept override {
    return memory_.bytes() + (block_ ? block_->bytes() : 0) +
           own_resets_.capacity() * sizeof(std::int32_t) + trailer_bytes_;
  }
  void resume(std::int32_t stream) override {
    check_memory(nghttp2_session_resume_data(session_, stream));
  }
  void consume(std::int32_t stream, std::size_t bytes) override {
    check_memory(nghttp2_session_consume_stream(session_, stream, bytes));
  }
  void reset(std::int32_t stream, code why) override {
    // A client that was refused should know how many streams there may be.
    if (why != code::refused_stream) own_resets_.push_back(stream);
    check_memory(nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream,
                                           static_cast<std::uint32_t>(why)));
  }

  void end_with(std::int32_t stream, const header_lines& trailer) override {
    trailers_[stream] = trailer;
    trailer_bytes_ += trailer.bytes();
  }
  // nghttp2 asks for the end of a body only when there is a window for more bytes; an end needs
  // none (RFC 9113, 6.9). It needs no window, though, for fields behind a body, even for an empty
  // list of fields: add_frame() makes an empty DATA frame of that.
  void end_body(std::int32_t stream) override {
    if (nghttp2_session_find_stream(session_, stream) == nullptr)
      return early_ends_.push_back(stream);
    if (has_trailer_behind(stream)) return;
    check_memory(nghttp2_submit_trailer(session_, stream, nullptr, 0));
  }
  void terminate(code why) override {
    check_memory(nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(why)));
  }

 protected:
  void fail(excess why, code sent) {
    if (broken_ != excess::none) return;
    broken_ = why;
    check_memory(nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(sent)));
  }
  // The stream no longer exists. Returns whether this end has reset it.
  bool forget(std::int32_t stream) {
    std::erase(early_ends_, stream);
    if (const auto found = trailers_.find(stream); found != trailers_.end()) {
      trailer_bytes_ -= found->second.bytes();
      trailers_.erase(found);
    }
    return std::erase(own_resets_, stream) != 0;
  }
  // Sends the fields behind the body that ends, if there are some.
  bool has_trailer_behind(std::int32_t stream) {
    const auto found = trailers_.find(stream);
    if (found == trailers_.end()) return false;
    const std::vector<nghttp2_nv> all = lines_of(found->second);
    check_memory(nghttp2_submit_trailer(session_, stream, all.data(), all.size()));
    trailer_bytes_ -= found->second.bytes();
    trailers_.erase(found);
    return true;
  }
  // Call it when the head of a request was sent: its body may have ended before.
  void end_if_early(std::int32_t stream) {
    if (std::erase(early_ends_, stream) != 0) end_body(stream);
  }
  // An error of the peer for which nghttp2 has reset the stream.
  void count_reset_sent(std::int32_t stream) {
    if (std::ranges::count(own_resets_, stream) == 0) watch_.count_reset(now_ns_);
  }
  void note_goaway_sent(const nghttp2_goaway& frame) {
    if (frame.error_code != NGHTTP2_NO_ERROR && broken_ == excess::none)
      broken_ = excess::protocol_error;
  }
  static std::vector<nghttp2_nv> lines_of(const header_lines& lines) {
    std::vector<nghttp2_nv> all;
    all.reserve(lines.fields().size() + 1);
    for (const field line : lines.fields()) all.push_back(line_of(line.name, line.value));
    return all;
  }
  void send_settings(std::span<const nghttp2_settings_entry> ours) {
    check_memory(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, ours.data(), ours.size()));
    check_memory(
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window));
  }
  static std::uint32_t number(std::size_t size) noexcept {
    return static_cast<std::uint32_t>(size);
  }

  nghttp2_memory memory_;
  nghttp2_session* session_ = nullptr;
  const block_limits heads_;
  frame_watch watch_;
  excess broken_ = excess::none;
  bool in_call_ = false;  // receive() or send() is under way
  std::int64_t now_ns_ = 0;
  std::optional<head_block> block_;       // which is being read
  std::vector<std::int32_t> own_resets_;  // streams that the caller has reset
  std::vector<std::int32_t> early_ends_;  // bodies that have ended before their head was sent
  std::int32_t reset_by_peer_ = 0;
  std::unordered_map<std::int32_t, header_lines> trailers_;  // of bodies that are being sent
  std::size_t trailer_bytes_ = 0;

 private:
  template <class>
  friend struct nghttp2_callbacks;
  // HEADERS without a field that end a stream become DATA, which no reader takes for a trailer.
  static void add_frame(output& frames, std::string_view bytes) {
    constexpr std::string_view no_fields{"\0\0\0\1\5", 5}, no_data{"\0\0\0\0\1", 5};
    constexpr std::size_t head_bytes = 9;
    if (bytes.size() == head_bytes && bytes.starts_with(no_fields)) [[unlikely]] {
      frames.add(no_data);
      bytes.remove_prefix(no_data.size());
    }
    frames.add(bytes);
  }
  void check_watch() {
    if (watch_.found() == excess::protocol_error) {
      fail(excess::protocol_error, code::protocol_error);
    } else if (watch_.found() != excess::none) {
      fail(watch_.found(), code::enhance_your_calm);
    }
  }
};

// The functions that nghttp2 calls. No exception may leave them.
template <class Self>
struct nghttp2_callbacks {
  static Self& of(void* self) noexcept { return *static_cast<Self*>(self); }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame*, void* self) {
    of(self).block_.emplace();
    return 0;
  }
  static int on_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                       std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                       std::uint8_t, void* self) {
    return guarded([&] {
      Self& session = of(self);
      if (!session.block_) return 0;
      session.block_->add(text_of(name, name_bytes), text_of(value, value_bytes), session.heads_);
      // A small table can make many bytes of few (an HPACK bomb).
      constexpr std::size_t bomb = 4;
      if (session.block_->bytes() / bomb > session.heads_.bytes) {
        session.fail(excess::header_list, code::enhance_your_calm);
        return static_cast<int>(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
      }
      return 0;
    });
  }
  // Without this function nghttp2 ignores a field with a line end in its value.
  static int on_invalid_header(nghttp2_session* session, const nghttp2_frame* frame,
                               const std::uint8_t*, std::size_t, const std::uint8_t*, std::size_t,
                               std::uint8_t, void*) {
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                              NGHTTP2_PROTOCOL_ERROR);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    return guarded([&] {
      of(self).on_frame(*frame);
      return 0;
    });
  }
  static int on_data(nghttp2_session* session, std::uint8_t, std::int32_t stream,
                     const std::uint8_t* data, std::size_t bytes, void* self) {
    return guarded([&] {
      nghttp2_session_consume_connection(session, bytes);
      of(self).events_->on_body(stream, text_of(data, bytes));
      return 0;
    });
  }
  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t why, void* self) {
    return guarded([&] {
      of(self).on_close(stream, why);
      return 0;
    });
  }
  static int on_sent(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    return guarded([&] {
      of(self).on_sent(*frame);
      return 0;
    });
  }
  static ssize_t read_body(nghttp2_session*, std::int32_t stream, std::uint8_t* to,
                           std::size_t room, std::uint32_t* flags, nghttp2_data_source*,
                           void* self) {
    ssize_t result = NGHTTP2_ERR_DEFERRED;
    const int failed = guarded([&] {
      bool ends = false;
      const std::size_t bytes =
          of(self).events_->more_of(stream, {reinterpret_cast<char*>(to), room}, ends);
      if (ends) *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (ends && of(self).has_trailer_behind(stream)) *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      if (bytes != 0 || ends) result = static_cast<ssize_t>(bytes);
      return 0;
    });
    return failed != 0 ? failed : result;
  }
  // A body of which more_of() is asked for the bytes.
  static nghttp2_data_provider body() noexcept {
    nghttp2_data_provider provider{};
    provider.read_callback = &read_body;
    return provider;
  }

  static const nghttp2_session_callbacks* all() {
    static const std::unique_ptr<nghttp2_session_callbacks, nghttp2_deleted> callbacks = [] {
      nghttp2_session_callbacks* to = nullptr;
      if (nghttp2_session_callbacks_new(&to) != 0) throw std::bad_alloc();
      nghttp2_session_callbacks_set_on_begin_headers_callback(to, &on_begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(to, &on_header);
      nghttp2_session_callbacks_set_on_invalid_header_callback(to, &on_invalid_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(to, &on_frame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, &on_data);
      nghttp2_session_callbacks_set_on_stream_close_callback(to, &on_close);
      nghttp2_session_callbacks_set_on_frame_send_callback(to, &on_sent);
      return std::unique_ptr<nghttp2_session_callbacks, nghttp2_deleted>(to);
    }();
    return callbacks.get();
  }
  static const nghttp2_option* options() {
    static const auto chosen = common_options();
    return chosen.get();
  }
};

}  // namespace troupe::http::h2

#endif
