// exchange: one request of an HTTP/2 connection, and its answer, on one stream.
//
// Threads: the connection's task and its children, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "http/h1/send_order.hpp"
#include "http/h2/session.hpp"
#include "http/server/handling.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http::h2 {

class conversation;

class exchange final : public handling, private transport {
 public:
  // `ends`: the request has no body.
  exchange(conversation& in, std::int32_t stream, head_block&& head, bool ends);
  // Its memory is kept for the next one, as that of a coroutine of this size is.
  static void* operator new(std::size_t bytes) { return tasks::allocate_frame(bytes); }
  static void operator delete(void* at, std::size_t bytes) noexcept {
    tasks::deallocate_frame(at, bytes);
  }

  // ---- what comes from the client ----
  void came(std::string_view piece);
  void ended(head_block&& trailer);
  // The stream no longer exists, or the connection.
  void closed() noexcept;
  // The client may have gone.
  void gone() noexcept { gone_.request_stop(); }
  // A WebSocket is told that the server stops.
  void stop_talking() noexcept;
  // Bytes that were kept back may be sent again.
  std::size_t take_kept_back() noexcept { return std::exchange(kept_back_, 0); }

  // ---- what goes to the client ----
  std::size_t more(std::span<char> to, bool& ends);
  // Whether there are bytes for the client, which waits for nothing but to take them.
  bool is_sending() const noexcept { return !unsent_.empty(); }

  // Answers at once if that is possible. Otherwise it returns false, and serve() is to be run.
  bool begin();
  task<> serve();

  bool is_collecting() const noexcept { return collects_ && !body_ended_; }
  std::size_t collected() const noexcept {
    return collects_ ? unread_.size() + request_.collected_.size() : 0;
  }
  std::size_t decoder_memory() const noexcept {
    return decoded_ == nullptr ? 0 : decoded_->memory();
  }
  bool is_done() const noexcept { return done_; }
  bool is_closed() const noexcept { return closed_; }
  // The whole answer was given to the session, and the rest of the request is of no use.
  bool is_unread() const noexcept { return !body_ended_; }

 private:
  fault read_head(bool ends);
  fault decode_collected();
  bool run_at_once();
  void answer(response&& with);
  void begin_answer(const response& with, bool has_length, std::uint64_t length, bool has_body);
  task<> run_handler_later();
  task<> answer_waiting();
  task<> send_stream();
  task<> send_part();
  task<> talk();
  void answer_exception(std::exception_ptr thrown, bool is_cancelled);
  void finish() noexcept;
  // Waits until something has come, or the stream has ended, for at most that time.
  task<> await_news(std::chrono::nanoseconds at_most);
  [[noreturn]] void throw_gone() const;

  task<std::string_view> next_encoded() override;
  endpoint peer() override;
  bool has_address() const noexcept override;
  bool secure() const noexcept override;
  bool is_lost() const noexcept override { return closed_; }
  std::stop_token client_gone() override;
  std::optional<tls_certificate> client_certificate() override;

  task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) override;
  task<> send(std::string_view bytes) override;
  task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                std::uint64_t bytes) override;
  task<> send_owned(std::string bytes) override;
  slowest_pace message_pace() const noexcept override;

  conversation& of_;
  const std::int32_t stream_;
  head_block block_;
  std::optional<head_block> trailer_;
  message_head head_;
  fault wrong_ = fault::none;  // why the request, or its body, is refused
  response answer_;

  std::string unread_, piece_;  // of the body: what no handler has read; what one reads now
  std::size_t kept_back_ = 0;   // bytes that were collected, and for which no window was given yet
  paced_arrival body_;
  std::optional<event> news_;
  std::stop_source gone_;

  std::string_view unsent_;  // of the answer's body; refers to `pending_` or to `answer_`
  std::string pending_;
  std::optional<event> taken_;
  send_order order_;

  bool body_ended_, silent_ = false;
  bool continue_due_ = false;
  bool is_websocket_ = false, stops_talking_ = false;
  bool collects_ = false;
  bool is_read_ = false;
  bool answer_begun_ = false, answer_ends_ = false;
  bool done_ = false;    // no handler runs
  bool closed_ = false;  // the stream no longer exists
};

}  // namespace troupe::http::h2
