// exchange: one request and its answer, whatever protocol they go by.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/invariant.hpp"
#include "http/client/client_resources.hpp"
#include "http/client/kept_answer.hpp"
#include "http/coding/decoded_body.hpp"
#include "http/server/calls/one_at_a_time.hpp"
#include "troupe/http/client_message.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/http/url.hpp"

namespace troupe::http {

struct route;

// The stage of an answer.
// Invariants
//   A1  An answer ends once: it is complete, given up, or too slow, and has begun before.
class answer_progress {
 public:
  // A byte of it is here.
  bool has_begun() const noexcept { return stage_ != stage::none; }
  bool is_complete() const noexcept { return stage_ == stage::complete; }
  bool is_too_slow() const noexcept { return stage_ == stage::too_slow; }
  bool is_given_up() const noexcept { return stage_ == stage::given_up; }

  void begin() noexcept {
    if (!has_begun()) stage_ = stage::begun;
  }
  void complete() noexcept { end(stage::complete); }
  void note_slow() noexcept { end(stage::too_slow); }
  // Whatever it was, unless it has ended.
  void give_up() noexcept {
    if (stage_ == stage::none || stage_ == stage::begun) stage_ = stage::given_up;
  }

 private:
  enum class stage : std::uint8_t { none, begun, complete, too_slow, given_up };
  void end(stage how) noexcept {
    if (is_given_up()) return;  // by another read, while this one waited
    TROUPE_INVARIANT(stage_ == stage::begun, "A1");
    stage_ = how;
  }
  stage stage_ = stage::none;
};

class exchange {
 public:
  exchange(std::shared_ptr<client_resources> by, url at, tasks::limits within)
      : core_(std::move(by)),
        at_(std::move(at)),
        where_(at_.to_string()),
        life_(std::move(within)) {}
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  virtual ~exchange() = default;

  // Sends the request. `lines`: its fields, except for those with the length of the body.
  virtual task<> send_request(client_request& asked, const route& by, const std::string& lines) = 0;
  virtual task<> send_piece(std::string_view bytes) = 0;
  // Reads the head of the answer, and skips interim answers (1xx).
  task<> read_head(http::method asked);
  // The next piece of the body, decoded if begin_decoding() has found a coding.
  task<std::string_view> next_piece() {
    return decoded_ == nullptr ? next_encoded() : next_decoded();
  }
  // The same, as the server has sent it.
  virtual task<std::string_view> next_encoded() = 0;
  // The body is decoded from now on if it has a coding that is known; the fields of the coding are
  // then removed from the head. Call it when the head was read.
  void begin_decoding(http::method asked);
  // The next piece, behind the pieces that a read_all() collected before it was given up.
  task<std::string_view> read();
  task<std::string> read_all();

  // True when a byte of the answer has arrived.
  bool heard() const noexcept { return progress_.has_begun(); }
  // Whether the server has done nothing of the request, and will not: it has refused it, or its
  // connection takes no more requests.
  enum class refusal : std::uint8_t { none, refused, moved };
  virtual refusal refused() const { return refusal::none; }
  // True when the connection did not take all of the request.
  bool refused_bytes() const noexcept { return refused_bytes_; }
  const url& at() const noexcept { return at_; }
  const std::string& where() const noexcept { return where_; }
  const tasks::limits& life() const noexcept { return life_; }

  int status() const noexcept { return status_; }
  std::string_view reason() const noexcept { return reason_; }
  http::fields fields() const noexcept { return {head_text_.data(), head_positions_}; }
  http::fields trailer() const noexcept { return {trailer_text_.data(), trailer_positions_}; }
  std::optional<std::uint64_t> length() const noexcept { return length_; }

 protected:
  static constexpr int interim_max = 16;  // interim answers (1xx) before the final one

  virtual task<> read_head_within(http::method asked, tasks::limits soon) = 0;
  // Nothing more of the answer is read.
  virtual void give_up() noexcept = 0;
  void keep_head(int status, std::string_view reason, const http::fields& fields);
  void keep_trailer(const http::fields& trailer);
  // Runs the function that uploads the body. Returns false if `server_end` has completed before:
  // the server takes no more, and the function was cancelled.
  static task<bool> run_upload(task<> function, task<> server_end);
  // Throws when the last read was given up.
  task<> check_given_up();
  [[noreturn]] void throw_slow() const;
  [[noreturn]] void throw_too_much_kept() const;

  const std::shared_ptr<client_resources> core_;
  const url at_;
  const std::string where_;
  const tasks::limits life_;
  std::optional<std::uint64_t> length_;
  paced_arrival body_;
  answer_progress progress_;
  one_at_a_time::slot reading_;
  bool refused_bytes_ = false;
  bool cut_off_ = false;  // a part of the request was sent, and the rest will never be

 private:
  task<std::string_view> next_decoded();
  void check_decoded();
  task<> collect();
  // `collected`: the capacity of the text that read_all() has so far.
  void count_kept(std::size_t collected);
  // Frees the text that read_all() has collected.
  void forget_collected() noexcept;

  std::unique_ptr<decoded_body> decoded_;
  std::size_t collected_bytes_ = 0;
  kept_answer kept_;
  int status_ = 0;
  std::string reason_, head_text_, trailer_text_;
  std::vector<http::fields::position> head_positions_, trailer_positions_;
  std::string collected_;  // by a read_all(), also one that was given up
  one_at_a_time::slot collecting_;
  bool is_taken_ = false;  // a read() has given `collected_`
};

// Whether one of the lines `Name: value` has that name.
bool names_field(std::string_view lines, std::string_view name) noexcept;
// Whether a request announces the length of its body: it has a body, or its method (POST, PUT,
// PATCH) expects a body.
bool has_length_line(client_request& asked) noexcept;
// The line of the field Cookie, if there are cookies for the request.
std::string cookie_line(const client_resources& core, client_request& asked, const url& to,
                        request_site site);
// Stores the cookies of an answer, if the client keeps any.
void keep_cookies(const client_resources& core, const exchange& answer);

// Removes the fields with these names.
void strip(std::string& fields, std::initializer_list<std::string_view> names);

// Gives the library access to private members of the public types.
class client_access {
 public:
  static client_response make(std::shared_ptr<exchange> answer) noexcept {
    return client_response(std::move(answer));
  }
  static exchange& of(const client_response& answer) noexcept { return *answer.exchange_; }
  static std::string& method(client_request& asked) noexcept { return asked.method_; }
  static std::string& fields(client_request& asked) noexcept { return asked.fields_; }
  static std::string& body(client_request& asked) noexcept { return asked.body_; }
  static upload_function& upload(client_request& asked) noexcept { return asked.upload_; }
  static bool& has_body(client_request& asked) noexcept { return asked.has_body_; }
  static http::url url_of(const client_request& asked) { return url_of(asked, asked.url()); }
  // `text` replaces the request's own.
  static http::url url_of(const client_request& asked, std::string_view text) {
    return asked.as_written_ ? url::parse_as_written(text) : url::parse(text);
  }
  static bool ranged(const client_request& asked) noexcept { return asked.ranged_; }
};

}  // namespace troupe::http
