// server_session: the framing of HTTP/2 for a server, over nghttp2: takes bytes, reports their
// contents, and gives the bytes to send. It does no I/O.
//
// Without nghttp2 the library has no session: make() returns null.
//
// Threads: one at a time. The functions of server_session_events are called within receive() and
// send(). They may call reset() and stop_upload() of the session, and nothing else of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/h1/output.hpp"
#include "http/h2/framing/code.hpp"
#include "http/h2/framing/frame_watch.hpp"
#include "http/h2/framing/head_block.hpp"
#include "http/h2/framing/header_lines.hpp"

namespace troupe::http::h2 {

struct server_session_events {
  // A request has arrived. `ends`: it has no body. Return false to refuse the stream.
  virtual bool on_request(std::int32_t stream, head_block&& head, bool ends) = 0;
  virtual void on_body(std::int32_t stream, std::string_view piece) = 0;
  // The request is complete.
  virtual void on_end(std::int32_t stream, head_block&& trailer) = 0;
  // The stream no longer exists. `by_peer`: its client has reset it.
  virtual void on_closed(std::int32_t stream, bool by_peer) = 0;
  // The whole answer was given to send().
  virtual void on_answered(std::int32_t stream) = 0;
  // Writes the next bytes of an answer's body to `to`. Returns how many; sets `ends` when no more
  // follow. With 0 bytes and no end the session waits for resume().
  virtual std::size_t more_of(std::int32_t stream, std::span<char> to, bool& ends) = 0;
  // The client has answered the session's PING.
  virtual void on_pong() = 0;

 protected:
  ~server_session_events() = default;
};

class server_session {
 public:
  struct rules {
    http2_limits limits;
    block_limits heads;
  };
  // Returns null if the library was built without nghttp2.
  static std::unique_ptr<server_session> make(const rules& by);
  static bool is_available() noexcept;
  virtual ~server_session() = default;

  // The receiver of all further events.
  void tell(server_session_events& to) noexcept { events_ = &to; }

  // The next bytes of the client. Errors of the client are answered by the session itself: after
  // one of the connection send() gives a GOAWAY, and is_over() becomes true.
  virtual void receive(std::string_view bytes, std::int64_t now_ns) = 0;
  // Adds bytes that are to be sent, until there are `most` or a few more. Returns false when there
  // is nothing more to send for now.
  virtual bool send(output& to, std::size_t most) = 0;
  // True when nothing more is read: GOAWAY was sent, and no stream is left.
  virtual bool is_over() const noexcept = 0;
  // Whether the client went beyond a limit, or has broken the protocol.
  virtual excess broken() const noexcept = 0;
  // Whether something has begun that the client has to complete at once.
  virtual bool is_inside() const noexcept = 0;

  // Answers. With a body, more_of() is called for it.
  virtual void respond(std::int32_t stream, int status, const header_lines& lines,
                       bool has_body) = 0;
  // Fields behind the body of an answer; call it before more_of() sets `ends`.
  virtual void end_with(std::int32_t stream, const header_lines& trailer) = 0;
  // No more of the body follows behind the bytes of more_of(), all of which were given to send().
  // Sends the fields of end_with(), if there are some, and ends the stream, even where the client
  // has given no window for more bytes.
  virtual void end_body(std::int32_t stream) = 0;
  virtual void respond_meanwhile(std::int32_t stream, int status) = 0;
  virtual void resume(std::int32_t stream) = 0;
  // The memory that the session holds now.
  virtual std::size_t memory() const noexcept = 0;
  // How many bytes of this stream's body the peer's windows let through now.
  virtual std::size_t window(std::int32_t stream) const noexcept = 0;
  // The handler has taken so many bytes of the body.
  virtual void consume(std::int32_t stream, std::size_t bytes) = 0;
  virtual void reset(std::int32_t stream, code why) = 0;
  // The answer was sent, and the rest of the request has no reader: resets the stream with NO_ERROR
  // (RFC 9113, 8.1) when the client has answered a PING that follows the answer. At once it would
  // reach clients together with the answer, and some then take the answer for lost (curl 7.88).
  virtual void stop_upload(std::int32_t stream) = 0;

  // announce_end: no new requests, please; then await the answer to a PING. end: requests that have
  // arrived until now are the last.
  virtual void announce_end() = 0;
  virtual void end() = 0;
  // GOAWAY, and no more.
  virtual void terminate(code why) = 0;

 protected:
  server_session_events* events_ = nullptr;
};

}  // namespace troupe::http::h2
