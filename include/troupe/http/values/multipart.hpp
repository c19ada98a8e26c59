// multipart: the parts of a multipart/form-data body, as they arrive.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/http/request.hpp"
#include "troupe/http/values/kept_share.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// The head of a part.
struct multipart_part {
  std::string name;
  // The last component of the name that the client gave to the file, without control bytes; "" for
  // a field. It is the client's choice: do not use it as the path of a file.
  std::string file_name;
  std::string type;  // Content-Type; "" if the part has none
  bool is_file = false;
};

// Limits of a body of multipart/form-data; the server's body_bytes limits all of it.
struct multipart_limits {
  // Maximum number of parts. Default 1,000; more is answered 413.
  std::size_t parts = 1'000;
  // Maximum bytes of the head of a part. Default 4 KiB; more is answered 413.
  std::size_t head_bytes = 4 * 1024;
};

// Parses a body, without I/O (RFC 7578). Errors: status_error 400 for a body that is malformed, 413
// beyond the limits. A body ends with its last boundary; bytes after it are ignored.
class multipart_parser {
 public:
  // `part`: the head of a part is complete. `data`: a piece of its content, in order. `part_end`,
  // `end`: of the part, of the body.
  enum class event : std::uint8_t { need_more, part, data, part_end, end };
  struct step {
    event what = event::need_more;
    std::size_t consumed = 0;  // the consumed bytes, which must not be passed to the next call
    std::string_view data;
  };

  // `boundary`: the parameter of the Content-Type, 1 to 70 bytes.
  explicit multipart_parser(std::string_view boundary, const multipart_limits& limits = {});

  // `input`: all bytes that were not consumed. need_more asks for a call with more bytes behind
  // them.
  step next(std::string_view input);
  const multipart_part& part() const noexcept { return part_; }
  // The body has ended here. Throws status_error 400 before its last boundary.
  void check_end() const;

 private:
  enum class state : std::uint8_t { start, preamble, behind_boundary, head, content, end };
  step skip_preamble(std::string_view input);
  step read_boundary(std::string_view input);
  step read_head(std::string_view input);
  step read_content(std::string_view input);
  void take_line(std::string_view line);
  std::size_t begin_of_delimiter(std::string_view input) const noexcept;
  std::string delimiter_;  // "\r\n--boundary"
  multipart_limits limits_;
  multipart_part part_;
  std::size_t parts_ = 0;
  bool has_disposition_ = false;
  state state_ = state::start;
};

// Reads the parts of a request's body, one after the other, without keeping them.
//
// Errors: the constructor throws status_error 415 if the body is not multipart/form-data, and
// usage_error if another reader has read a part of it. A call that is given up loses no bytes. The
// functions throw status_error 400 and 413 as multipart_parser does, and the errors of
// request::read(). Lifetime: as the request. Memory: 64 KiB at most beside the piece.
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::task<troupe::http::response> measure(troupe::http::request& asked) {
//       troupe::http::multipart_reader parts(asked);
//       std::string said;
//       while (co_await parts.next()) {
//         std::size_t bytes = 0;
//         for (;;) {
//           const std::string_view piece = co_await parts.read();
//           if (piece.empty()) break;
//           bytes += piece.size();
//         }
//         said += parts.part().name + ": " + std::to_string(bytes) + "\n";
//       }
//       co_return troupe::http::response::text(said);
//     }
class multipart_reader {
 public:
  explicit multipart_reader(request& from, const multipart_limits& limits = {});
  multipart_reader(const multipart_reader&) = delete;
  multipart_reader& operator=(const multipart_reader&) = delete;

  // Skips the rest of this part, and continues with the next part. Returns false at the end of the
  // body.
  task<bool> next();
  const multipart_part& part() const noexcept { return parser_.part(); }
  // The next piece of the part's content, valid until the next call; "" at its end.
  task<std::string_view> read();

 private:
  task<multipart_parser::step> advance();
  request& from_;
  multipart_parser parser_;
  std::string input_;
  std::size_t used_ = 0;     // of `input_`
  values::kept_share kept_;  // `input_`
  bool in_part_ = false, is_over_ = false;
};

}  // namespace troupe::http
