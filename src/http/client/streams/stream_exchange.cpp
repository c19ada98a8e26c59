#include "http/client/streams/stream_exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "http/client/connect.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {
namespace {

// a body up to this size is copied, and no caller waits until it was taken
constexpr std::size_t small_body_bytes = 16 * 1024;

}  // namespace

stream_exchange::~stream_exchange() {
  on_->forget(*stream_);
  if (is_open_) {
    on_->drop(*stream_);
  } else {
    on_->give_back_place();
    on_->tell_freed();
  }
}

void stream_exchange::give_up() noexcept {
  progress_.give_up();
  on_->drop(*stream_);
}

exchange::refusal stream_exchange::refused() const {
  const std::lock_guard lock(on_->mutex());
  if (stream_->failed == stream_failure::refused) return refusal::refused;
  return stream_->failed == stream_failure::moved ? refusal::moved : refusal::none;
}

void stream_exchange::throw_failure() {
  const stream_failure how = stream_->failed;
  const std::string& why = stream_->why;
  switch (how) {
    case stream_failure::refused:
    case stream_failure::moved:
      throw client_error(client_failure::refused, where_, why);
    case stream_failure::reset:
      throw client_error(client_failure::reset, where_, why);
    case stream_failure::lost:
      throw client_error(heard() ? client_failure::truncated : client_failure::closed, where_,
                         "the connection ended: " + why);
    case stream_failure::stalled:
      throw timed_out("troupe: http: " + where_ +
                      ": the server takes nothing: try again, or allow more "
                      "(client_options::write_time)");
    case stream_failure::malformed:
    case stream_failure::excess:
      throw client_error(client_failure::bad_response, where_, why, fault::bad_frames);
    case stream_failure::kept:
      throw_too_much_kept();
    case stream_failure::none:
      break;
  }
  throw client_error(client_failure::truncated, where_, "an earlier read of it has failed");
}

task<> stream_exchange::await_news(tasks::limits within) {
  co_await stream_->news.wait().timeout(within.left()).stop(within.stop());
}

// ---- the request ----

task<bool> stream_exchange::may_connect() {
  const tasks::limits soon = life_.within(core_->options.head_time);
  for (;;) {
    const std::optional<bool> said = on_->allows_connect();
    if (said) co_return *said;
    try {
      co_await on_->settings_came().wait().timeout(soon.left()).stop(soon.stop());
    } catch (const timed_out&) {
      throw timed_out("troupe: http: " + where_ +
                      ": no SETTINGS of the server in time: try again, or allow more "
                      "(client_options::head_time)");
    }
  }
}

task<> stream_exchange::send_request(client_request& asked, const route&,
                                     const std::string& lines) {
  const std::string& body = client_access::body(asked);
  upload_function& pieces = client_access::upload(asked);
  h2::header_lines head;
  head.add(":method", protocol_.empty() ? asked.method() : "CONNECT");
  if (!protocol_.empty()) head.add(":protocol", protocol_);
  head.add(":scheme", at_.secure() ? "https" : "http");
  head.add(":authority", at_.authority());
  head.add(":path", at_.target());
  head.add_lines(lines);
  if (!pieces && has_length_line(asked)) head.add("content-length", std::to_string(body.size()));
  const bool is_small = !pieces && body.size() <= small_body_bytes;
  if (is_small && protocol_.empty()) {
    stream_->owned = body;
    stream_->unsent = stream_->owned;
    stream_->is_last = true;
  }
  asked_at_ = now();
  is_open_ = true;
  on_->open(*stream_, stream_, head, pieces || !body.empty() || !protocol_.empty());
  if (is_small) co_return;
  if (!pieces) {
    co_await await_taken(body, true);
    co_return;
  }
  upload writer(*this);
  const bool is_whole = co_await run_upload(pieces(writer), server_end());
  if (cut_off_) throw io_error("send", where_ + ", of which a piece was given up", EPIPE);
  h2::header_lines behind;
  behind.add_lines(writer.trailer_lines());
  const std::lock_guard lock(on_->mutex());
  if (!is_whole) {
    if (stream_->failed != stream_failure::none) throw_failure();
    refused_bytes_ = true;  // the server may have sent the reason
    throw io_error("send", where_ + ", of which the server wants no more", EPIPE);
  }
  on_->end_body(*stream_, behind);
}

// Completes when the server takes no more of the request.
task<> stream_exchange::server_end() {
  for (;;) {
    {
      const std::lock_guard lock(on_->mutex());
      if (stream_->stage.is_over()) co_return;
      stream_->news.reset();
    }
    co_await stream_->news.wait();
  }
}

task<> stream_exchange::send_piece(std::string_view bytes) {
  if (cut_off_) throw io_error("send", where_ + ", of which a piece was given up", EPIPE);
  co_await await_taken(bytes, false);
}

// Bytes that the session may take. They are the caller's: none is taken after this call.
class stream_exchange::sent_piece {
 public:
  explicit sent_piece(stream_exchange& exchange) noexcept : exchange_(exchange) {}
  sent_piece(const sent_piece&) = delete;
  sent_piece& operator=(const sent_piece&) = delete;
  ~sent_piece() {
    const std::lock_guard lock(exchange_.on_->mutex());
    exchange_.stream_->unsent = {};
    if (!is_taken) exchange_.stream_->is_last = false;
  }
  bool is_taken = false;

 private:
  stream_exchange& exchange_;
};

// Completes when the session has taken all bytes, which it does when the server has given a window
// for them.
task<> stream_exchange::await_taken(std::string_view bytes, bool is_last) {
  cut_off_ = true;  // it stays set when this task is cancelled in the middle
  sent_piece mine(*this);
  std::uint64_t taken = 0;
  {
    const std::lock_guard lock(on_->mutex());
    on_->send(*stream_, bytes, is_last);
    taken = stream_->taken;
  }
  for (;;) {
    bool is_over = false;
    {
      const std::lock_guard lock(on_->mutex());
      is_over = stream_->stage.is_over();
      refused_bytes_ = is_over;
      if (stream_->failed != stream_failure::none) throw_failure();
      mine.is_taken = !is_over && stream_->unsent.empty();
      taken = stream_->taken;
      stream_->news.reset();
    }
    if (mine.is_taken) break;
    if (is_over) {
      throw io_error("send", where_ + ", of which the server wants no more", EPIPE);
    }
    bool is_late = false;
    try {
      co_await await_news(life_.within(core_->options.write_time));
    } catch (const timed_out&) {
      const std::lock_guard lock(on_->mutex());
      is_late = life_.over() || stream_->taken == taken;
      // The server accepts no more of the request, and may have sent the reason.
      refused_bytes_ = is_late && !life_.over() && stream_->head.has_value();
      if (is_late) throw;
    }
  }
  cut_off_ = false;
}

// ---- the answer ----

task<> stream_exchange::read_head_within(http::method, tasks::limits soon) {
  for (;;) {
    {
      const std::lock_guard lock(on_->mutex());
      const stream_failure how = stream_->failed;
      const bool is_answered = how != stream_failure::none && how != stream_failure::lost &&
                               how != stream_failure::stalled;
      if (is_answered || stream_->head.has_value() || stream_->interim != 0) progress_.begin();
      if (stream_->head) break;  // even if the bytes behind it have failed
      if (how != stream_failure::none) throw_failure();
      stream_->news.reset();
    }
    try {
      co_await await_news(soon);
    } catch (const timed_out&) {
      on_->doubt(asked_at_);
      throw;
    } catch (const cancelled&) {
      on_->doubt(asked_at_);
      throw;
    }
  }
  fault wrong = fault::none;
  {
    const std::lock_guard lock(on_->mutex());
    wrong = stream_->head->wrong();
    if (wrong == fault::none) take_head();
  }
  if (wrong == fault::none) co_return;
  give_up();
  throw client_error(client_failure::bad_response, where_, text_of(wrong), wrong);
}

void stream_exchange::take_head() {
  const h2::head_block& head = *stream_->head;
  keep_head(head.status(), "", head.fields());
  const std::string_view text = head.fields()["content-length"];
  std::uint64_t bytes = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (!text.empty() && bad == std::errc{} && end == text.data() + text.size()) length_ = bytes;
}

void stream_exchange::finish() {
  progress_.complete();
  on_->drop(*stream_);  // the part of the request that the server does not need
}

task<std::string_view> stream_exchange::next_encoded() {
  if (progress_.is_complete()) co_return std::string_view();
  const one_at_a_time alone(
      reading_, "troupe: http::client_response: a read is under way already: await it first");
  if (progress_.is_too_slow()) throw_slow();
  if (progress_.is_given_up())
    throw client_error(client_failure::truncated, where_, "an earlier read of it has failed");
  for (;;) {
    bool is_whole = false;
    {
      const std::lock_guard lock(on_->mutex());
      on_->end_if_asked(*stream_);
      if (!stream_->unread.empty()) break;
      if (stream_->failed != stream_failure::none) throw_failure();
      is_whole = stream_->stage.has_answer();
      if (is_whole && stream_->trailer) keep_trailer(stream_->trailer->fields());
      if (!is_whole) stream_->news.reset();
    }
    if (is_whole) {
      finish();
      co_return std::string_view();
    }
    // Only the time that the server makes us wait counts, not the time that the caller takes.
    const client_options& options = core_->options;
    const tasks::limits soon =
        life_.within(body_.patience({options.body_rate, options.body_grace}));
    const std::chrono::nanoseconds begins = now();
    try {
      co_await await_news(soon);
    } catch (const timed_out&) {
      on_->doubt(begins);
      if (life_.over()) throw;
      progress_.note_slow();
    } catch (const cancelled&) {
      body_.waited(now() - begins);
      throw;
    }
    if (progress_.is_too_slow()) {
      give_up();
      throw_slow();
    }
    body_.waited(now() - begins);
  }
  co_await check_given_up();
  const std::lock_guard lock(on_->mutex());
  on_->take_body(*stream_, piece_);
  body_.came(piece_.size());
  co_return piece_;
}

}  // namespace troupe::http
