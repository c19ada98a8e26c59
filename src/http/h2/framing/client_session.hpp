// client_session: the framing of HTTP/2 for a client, over nghttp2: takes bytes, reports their
// contents, and gives the bytes to send. It does no I/O.
//
// Without nghttp2 the library has no session: make() returns null.
//
// Threads: one at a time. The functions of client_session_events are called within receive() and
// send(). They may call reset() of the session, and nothing else of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "http/h1/output.hpp"
#include "http/h2/framing/frame_watch.hpp"
#include "http/h2/framing/head_block.hpp"
#include "http/h2/framing/server_session.hpp"

namespace troupe::http::h2 {

// How a stream has ended.
enum class stream_end : std::uint8_t {
  complete,   // or reset by this end
  reset,      // by the server
  refused,    // the server has not done anything of it, and will not: it may be asked again
  malformed,  // the answer breaks the rules
};

struct client_session_events {
  // The head of a request was given to send(). Until then it waits for a stream that the server
  // allows.
  virtual void on_asked(std::int32_t stream) = 0;
  // A head has arrived: one of an interim answer (1xx), or the final one. `ends`: there is no body.
  virtual void on_head(std::int32_t stream, head_block&& head, bool ends) = 0;
  virtual void on_body(std::int32_t stream, std::string_view piece) = 0;
  // The answer is complete.
  virtual void on_end(std::int32_t stream, head_block&& trailer) = 0;
  // The stream no longer exists. `why`: the code of the reset, if it was reset; 0 for a stream
  // that was refused by GOAWAY.
  virtual void on_closed(std::int32_t stream, stream_end how, std::uint32_t why) = 0;
  // Writes the next bytes of a request's body to `to`. Returns how many; sets `ends` when no more
  // follow. With 0 bytes and no end the session waits for resume().
  virtual std::size_t more_of(std::int32_t stream, std::span<char> to, bool& ends) = 0;

 protected:
  ~client_session_events() = default;
};

class client_session {
 public:
  struct rules {
    http2_limits limits;
    block_limits heads;
  };
  // Returns null if the library was built without nghttp2.
  static std::unique_ptr<client_session> make(const rules& by);
  virtual ~client_session() = default;

  // The receiver of all further events.
  void tell(client_session_events& to) noexcept { events_ = &to; }

  // The next bytes of the server. Errors of the server are answered by the session itself: after
  // one of the connection send() gives a GOAWAY, and is_over() becomes true.
  virtual void receive(std::string_view bytes, std::int64_t now_ns) = 0;
  // Adds bytes that are to be sent, until there are `most` or a few more. Returns false when there
  // is nothing more to send for now.
  virtual bool send(output& to, std::size_t most) = 0;
  virtual bool has_to_send() const noexcept = 0;
  // True when nothing more is read: GOAWAY was sent or has arrived, and no stream is left.
  virtual bool is_over() const noexcept = 0;
  // Whether the server went beyond a limit, or has broken the protocol.
  virtual excess broken() const noexcept = 0;
  // Whether new requests are taken: no GOAWAY has arrived, and there are numbers left.
  virtual bool takes_requests() const noexcept = 0;
  // The memory that the session holds now.
  virtual std::size_t memory() const noexcept = 0;
  // How many streams the server allows at a time.
  virtual std::size_t streams_max() const noexcept = 0;
  // Whether the server's first SETTINGS have arrived, and whether they allow a CONNECT that names a
  // protocol (RFC 8441).
  virtual bool has_settings() const noexcept = 0;
  virtual bool allows_connect() const noexcept = 0;

  // Asks. `lines` begin with the pseudo-fields. With a body, more_of() is called for it. Returns
  // the number of the stream; 0 if there can be none.
  virtual std::int32_t request(const header_lines& lines, bool has_body) = 0;
  virtual void resume(std::int32_t stream) = 0;
  // The caller has taken so many bytes of the body.
  virtual void consume(std::int32_t stream, std::size_t bytes) = 0;
  virtual void reset(std::int32_t stream, code why) = 0;
  // Fields behind the body of a request; call it before more_of() sets `ends`.
  virtual void end_with(std::int32_t stream, const header_lines& trailer) = 0;
  // No more of the body follows behind the bytes of more_of(), all of which were given to send().
  // Sends the fields of end_with(), if there are some, and ends the stream, even where the server
  // has given no window for more bytes.
  virtual void end_body(std::int32_t stream) = 0;
  // GOAWAY, and no more.
  virtual void terminate(code why) = 0;

 protected:
  client_session_events* events_ = nullptr;
};

}  // namespace troupe::http::h2
