// Sends the bodies that functions stream, for both protocols.
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "http/coding/encoder.hpp"
#include "http/routing/response_parts.hpp"
#include "http/server/calls/call_end.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/writer.hpp"
#include "troupe/sync/mutex.hpp"

namespace troupe::http {

namespace {

// A stream that sends its bytes through an encoder to another stream.
class encoded_transport final : public transport {
 public:
  encoded_transport(body_writer& writer, coding by)
      : writer(writer), encoder_(make_encoder(by, encoder::window::small)) {}

  task<std::size_t> receive(std::span<char>, std::chrono::nanoseconds) override { co_return 0; }
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override { co_return 0; }
  task<> send(std::string_view bytes) override { return send_owned(std::string(bytes)); }
  task<> send_owned(std::string bytes) override {
    return encode(std::move(bytes), encoder::until::flush);
  }
  task<> finish() { return encode(std::string(), encoder::until::end); }
  // A piece was given up on its way, so that no end may follow.
  bool is_broken() const noexcept { return broken_; }

 private:
  // Branches may write at the same time: the output of one has to be sent before the next.
  task<> encode(std::string bytes, encoder::until state) {
    const mutex::guard held = co_await busy_.lock();
    // A piece that was encoded and not sent is missing from all that would follow.
    if (broken_) throw cancelled("a piece of the answer was not sent");
    broken_ = true;
    std::string encoded;
    encoder_->add(bytes, encoded, state);
    co_await writer.write(encoded);
    broken_ = false;
  }

  body_writer& writer;
  const std::unique_ptr<encoder> encoder_;
  mutex busy_;
  bool broken_ = false;
};

// Returns whether the body is complete.
task<bool> run_function(streamed_body& body, body_writer& writer, call_end& ends) {
  event_writer events(writer);
  task<> running = body.events ? body.events(events) : body.stream(writer);
  const bool has_returned = co_await ends.run(std::move(running));
  if (has_returned) writer.check_length();
  co_return has_returned || (ends.why() == call_end::cause::server_stops && !writer.is_short());
}

task<bool> run_encoded(streamed_body& body, body_writer& writer, call_end& ends) {
  encoded_transport over(writer, *body.coded_by);
  body_writer inner(over, false, false, body.length);
  const bool is_whole = co_await run_function(body, inner, ends);
  if (over.is_broken()) co_return false;
  writer.trailer_lines() += inner.trailer_lines();
  if (is_whole) co_await over.finish();
  co_return is_whole;
}

}  // namespace

task<bool> send_streamed(streamed_body& body, body_writer& to, call_end& ends) {
  return body.coded_by ? run_encoded(body, to, ends) : run_function(body, to, ends);
}

}  // namespace troupe::http
