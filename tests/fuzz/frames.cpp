#include "fuzz/frames.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "http/h2/framing/server_session.hpp"

namespace troupe::test {
namespace {

using namespace http::h2;

// Writes down what the session reports, and answers each request with three bytes.
class listener final : public server_session_events {
 public:
  bool on_request(std::int32_t stream, head_block&& head, bool ends) override {
    said_ += "\nrequest " + std::to_string(stream) + (ends ? " " : " + ") +
             std::string(head.method()) + " " + std::string(head.path()) + " " +
             std::string(head.authority()) + text_of(head.fields()) + "\n";
    open_.push_back(stream);
    return open_.size() <= streams_most;
  }
  // How much of a body is reported before an error in it depends on the pieces.
  void on_body(std::int32_t, std::string_view piece) override { bytes_ += piece.size(); }
  void on_end(std::int32_t stream, head_block&& trailer) override {
    said_ += "\nend " + std::to_string(stream) + text_of(trailer.fields()) + "\n";
  }
  void on_closed(std::int32_t stream, bool by_peer) override {
    said_ += "\nclosed " + std::to_string(stream) + (by_peer ? " by the client\n" : "\n");
    std::erase(open_, stream);
  }
  void on_answered(std::int32_t) override {}
  std::size_t more_of(std::int32_t, std::span<char> to, bool& ends) override {
    ends = true;
    const std::size_t bytes = std::min<std::size_t>(3, to.size());
    std::fill_n(to.begin(), bytes, 'x');
    return bytes;
  }
  void on_pong() override {}

  const std::string& said() const { return said_; }
  std::size_t body_bytes() const { return bytes_; }
  const std::vector<std::int32_t>& open() const { return open_; }

  static constexpr std::size_t streams_most = 10;

 private:
  static std::string text_of(const http::fields& all) {
    std::string made;
    for (const http::field one : all)
      made += " [" + std::string(one.name) + ": " + std::string(one.value) + "]";
    return made;
  }

  std::string said_;
  std::vector<std::int32_t> open_;
  std::size_t bytes_ = 0;
};

std::string report_of(std::string_view bytes, std::size_t piece) {
  server_session::rules by{http::http2_limits(), {1024, 10, 100}};
  by.limits.streams = listener::streams_most;
  by.limits.pings = by.limits.settings = by.limits.resets = by.limits.window_updates = 20;
  listener told;
  const std::size_t given = bytes.size();
  const std::unique_ptr<server_session> one = server_session::make(by);
  if (one == nullptr) return "";
  one->tell(told);
  one->receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1);
  one->receive(std::string_view("\0\0\0\4\0\0\0\0\0", 9), 1);
  while (!bytes.empty()) {
    one->receive(bytes.substr(0, piece), 1);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  const std::string said = told.said();
  if (told.body_bytes() > given) return "it reports more than there is";
  header_lines lines;
  lines.add("Name", "value");
  for (const std::int32_t stream : std::vector(told.open()))
    one->respond(stream, 200, lines, stream % 4 == 1);
  http::output out;
  constexpr std::size_t most = 1024 * 1024;
  one->send(out, most);
  if (out.size() >= most) return "it sends without an end";
  // Which of several errors is noticed first depends on the pieces.
  return said;
}

// What a client asks behind a GOAWAY of its own is read or not: it depends on the pieces.
std::string_view until_goaway(std::string_view bytes) {
  constexpr std::size_t head_bytes = 9;
  constexpr char goaway = 7;
  for (std::size_t at = 0; at + head_bytes <= bytes.size();) {
    if (bytes[at + 3] == goaway) return bytes.substr(0, at);
    std::size_t length = 0;
    for (int i = 0; i < 3; ++i)
      length = length << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
    at += head_bytes + length;
  }
  return bytes;
}

}  // namespace

std::string frames_difference(std::string_view input) {
  if (input.empty() || !server_session::is_available()) return "";
  const std::size_t piece = static_cast<unsigned char>(input.front()) % 32 + std::size_t{1};
  input = until_goaway(input.substr(1));
  const std::string at_once = report_of(input, input.size() + 1),
                    in_pieces = report_of(input, piece);
  return at_once == in_pieces ? "" : "at once:\n" + at_once + "in pieces:\n" + in_pieces;
}

}  // namespace troupe::test
