// A client of HTTP/2 for tests, which sends what it is told to, frame by frame, right or wrong.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/http.hpp"

namespace troupe::test::h2 {

enum frame_type : std::uint8_t {
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
enum frame_flag : std::uint8_t { ack = 1, end_stream = 1, end_headers = 4, padded = 8 };
enum error_code : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  flow_control_error = 3,
  stream_closed = 5,
  frame_size_error = 6,
  refused_stream = 7,
  cancel = 8,
  compression_error = 9,
  enhance_your_calm = 11,
  inadequate_security = 12,
};

using field_pair = std::pair<std::string, std::string>;
using field_pairs = std::vector<field_pair>;

struct frame {
  std::uint8_t type = 0, flags = 0;
  std::int32_t stream = 0;
  std::string payload;
};

inline std::string number(std::uint64_t value, int bytes) {
  std::string made;
  for (int i = bytes - 1; i >= 0; --i) made += static_cast<char>(value >> (8 * i));
  return made;
}
inline std::uint32_t number_in(std::string_view text) {
  std::uint32_t made = 0;
  for (const char one : text.substr(0, 4)) made = made << 8 | static_cast<unsigned char>(one);
  return made;
}

inline std::string frame_of(int type, int flags, std::int32_t stream, std::string_view payload) {
  return number(payload.size(), 3) + static_cast<char>(type) + static_cast<char>(flags) +
         number(static_cast<std::uint32_t>(stream), 4) + std::string(payload);
}
inline std::string settings_of(std::initializer_list<std::pair<int, std::uint32_t>> all) {
  std::string payload;
  for (const auto& [id, value] : all)
    payload += number(static_cast<std::uint64_t>(id), 2) + number(value, 4);
  return frame_of(settings, 0, 0, payload);
}
inline const std::string magic = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline const std::string hello = magic + settings_of({});

// A text of HPACK, without Huffman's code; lengths up to 16 KiB.
inline std::string hpack_text(std::string_view text) {
  std::string made;
  if (text.size() < 127) {
    made += static_cast<char>(text.size());
  } else {
    made += static_cast<char>(127);
    std::size_t left = text.size() - 127;
    for (; left >= 128; left /= 128) made += static_cast<char>(left % 128 | 128);
    made += static_cast<char>(left);
  }
  return made.append(text);
}
// Fields without the table.
inline std::string block_of(const field_pairs& all) {
  std::string made;
  for (const auto& [name, value] : all)
    made += std::string(1, '\0') + hpack_text(name) + hpack_text(value);
  return made;
}
inline field_pairs get(const std::string& path, const field_pairs& more = {}) {
  field_pairs made{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", path}};
  made.insert(made.end(), more.begin(), more.end());
  return made;
}
inline field_pairs post(const std::string& path, const field_pairs& more = {}) {
  field_pairs made = get(path, more);
  made.front().second = "POST";
  return made;
}
inline std::string ask(std::int32_t stream, const field_pairs& all, bool ends = true) {
  return frame_of(headers, end_headers | (ends ? end_stream : 0), stream, block_of(all));
}

struct answer {
  std::string status, body;
  field_pairs fields, trailer;
  bool is_complete = false;
  std::optional<std::uint32_t> reset;   // the code of RST_STREAM
  std::optional<std::uint32_t> goaway;  // that of GOAWAY, which has come before
  std::string field(std::string_view name) const {
    for (const auto& [key, value] : fields) {
      if (key == name) return value;
    }
    return "";
  }
};

class peer {
 public:
  static task<std::unique_ptr<peer>> connect(endpoint at, std::string first = hello) {
    tcp_stream made = co_await tcp_stream::connect(at);
    auto one = std::make_unique<peer>(std::move(made));
    co_await one->send(std::move(first));
    co_return one;
  }
  explicit peer(tcp_stream&& over) : over_(std::move(over)) { nghttp2_hd_inflate_new(&inflater_); }
  peer(const peer&) = delete;
  ~peer() { nghttp2_hd_inflate_del(inflater_); }

  task<> send(std::string bytes) { co_await over_.write_all(std::move(bytes)); }
  // Sends as much as the server takes.
  task<> send_what_fits(std::string bytes) {
    try {
      co_await over_.write_all(std::move(bytes));
    } catch (const io_error&) {
    }
  }

  // The next frame, or nothing at the end. Answers SETTINGS and PING.
  task<std::optional<frame>> next() {
    frame made;
    if (!co_await need(9)) co_return std::nullopt;
    const std::size_t bytes = number_in(std::string(1, '\0') + in_.substr(0, 3));
    if (!co_await need(9 + bytes)) co_return std::nullopt;
    made.type = static_cast<std::uint8_t>(in_[3]);
    made.flags = static_cast<std::uint8_t>(in_[4]);
    made.stream = static_cast<std::int32_t>(number_in(std::string_view(in_).substr(5)));
    made.payload = in_.substr(9, bytes);
    in_.erase(0, 9 + bytes);
    if (made.type == goaway) goaway_ = number_in(std::string_view(made.payload).substr(4));
    if (made.type == settings && (made.flags & ack) == 0 && replies)
      co_await send_what_fits(frame_of(settings, ack, 0, ""));
    if (made.type == ping && (made.flags & ack) == 0 && replies)
      co_await send_what_fits(frame_of(ping, ack, 0, made.payload));
    co_return made;
  }
  // The next frame of this type; nothing at the end.
  task<std::optional<frame>> next_of(int type, int flags = 0) {
    for (;;) {
      std::optional<frame> one = co_await next();
      if (!one || (one->type == type && (one->flags & flags) == flags)) co_return one;
      if (one->type == headers) fields_in(*one);
    }
  }

  // Reads until the stream's answer has ended, or the connection.
  task<answer> answer_to(std::int32_t stream) {
    answer made;
    for (;;) {
      const std::optional<frame> one = co_await next();
      made.goaway = goaway_;
      if (!one) co_return made;
      if (one->type == headers) {
        field_pairs all = fields_in(*one);
        if (one->stream == stream) {
          const bool is_trailer = !made.status.empty() && made.status[0] != '1';
          (is_trailer ? made.trailer : made.fields) = all;
          if (!is_trailer) made.status = all.front().second;
        }
      }
      if (one->stream != stream) continue;
      if (one->type == data) made.body += one->payload;
      if (one->type == rst_stream) {
        made.reset = number_in(one->payload);
        co_return made;
      }
      made.is_complete =
          (one->type == data || one->type == headers) && (one->flags & end_stream) != 0;
      if (made.is_complete) co_return made;
    }
  }
  // Reads to the end, and returns the code of the last GOAWAY; nothing if there was none.
  task<std::optional<std::uint32_t>> end() {
    for (;;) {
      const std::optional<frame> one = co_await next();
      if (!one) co_return goaway_;
    }
  }
  // Whether the server still answers.
  task<bool> is_alive() {
    co_await send_what_fits(frame_of(ping, 0, 0, "alive???"));
    const std::optional<frame> one = co_await next_of(ping, ack);
    co_return one.has_value();
  }

  field_pairs fields_in(const frame& one) {
    field_pairs made;
    const auto* at = reinterpret_cast<const std::uint8_t*>(one.payload.data());
    std::size_t left = one.payload.size();
    for (;;) {
      nghttp2_nv pair{};
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &pair, &flags, at, left, 1);
      if (used < 0) break;
      at += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
        made.emplace_back(std::string(reinterpret_cast<char*>(pair.name), pair.namelen),
                          std::string(reinterpret_cast<char*>(pair.value), pair.valuelen));
      }
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
      if (left == 0 && (flags & NGHTTP2_HD_INFLATE_EMIT) == 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return made;
  }
  tcp_stream& stream() { return over_; }

  bool replies = true;

 private:
  task<bool> need(std::size_t bytes) {
    std::array<char, 16384> room;
    while (in_.size() < bytes) {
      std::size_t came = 0;
      try {
        came = co_await over_.read(std::span<char>(room));
      } catch (const io_error&) {
      }
      if (came == 0) co_return false;
      in_.append(room.data(), came);
    }
    co_return true;
  }

  tcp_stream over_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string in_;
  std::optional<std::uint32_t> goaway_;
};

// Sends some frames behind the greeting, and returns the answer to a stream.
inline task<answer> answer_to(endpoint at, std::string frames, std::int32_t stream = 1) {
  const std::unique_ptr<peer> one = co_await peer::connect(at, hello + frames);
  answer got = co_await one->answer_to(stream);
  co_return got;
}
// The same, and returns the code of the GOAWAY with which the connection ends.
inline task<std::optional<std::uint32_t>> end_of(endpoint at, std::string bytes) {
  tcp_stream over = co_await tcp_stream::connect(at);
  peer one(std::move(over));
  future<> sending = spawn(one.send_what_fits(std::move(bytes)));
  const std::optional<std::uint32_t> code = co_await one.end();
  co_await std::move(sending);
  co_return code;
}

}  // namespace troupe::test::h2
