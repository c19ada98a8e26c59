// download: writes an answer's body to a file, and resumes where an earlier attempt ended.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/http/client.hpp"
#include "troupe/runtime/limited_task.hpp"

namespace troupe::http {

// The progress of a download.
struct download_progress {
  std::uint64_t bytes = 0;             // in the file, with the bytes of earlier calls
  std::optional<std::uint64_t> total;  // if the server has sent it
};

// How a download retries, checks and reports.
struct download_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  download_options() {}

  // Maximum bytes of the file. Default 64 GiB; a larger file is a client_error, body_too_large,
  // which is thrown before any byte is written if the server sends the length.
  std::uint64_t bytes_max = std::uint64_t{64} << 30;
  // How many requests in a row may fail without a further byte of the file. Default 5, at least 1;
  // then the last error is thrown. A request fails if its connection ends, if a phase takes too
  // long, or with an answer 429, 500, 502, 503 or 504.
  unsigned attempts = 5;
  // The pause after a failed request; it doubles with each further failure, up to 30 s. Default 500
  // ms.
  time_span pause = std::chrono::milliseconds(500);
  // Whether the file is on the disk before it has its name. Default true: a crash leaves the whole
  // file or no file.
  bool sync = true;
  // Called after each piece. Default: none. An exception from it ends the download.
  std::function<void(const download_progress&)> progress;
};

// The result of a download.
struct downloaded {
  downloaded() {}
  std::uint64_t bytes = 0;     // of the file
  std::uint64_t kept = 0;      // of these, the bytes that were there before the first request
  unsigned requests = 0;       // how many were sent, without redirects
  bool length_checked = true;  // false: the server did not send the file's length
  std::string url;             // after redirects
};

// The call of download(), in a limited_task: begins when it is awaited.
class download_call {
 public:
  using result = downloaded;
  download_call(client by, client_request asked, std::string path,
                download_options options) noexcept
      : by_(std::move(by)),
        asked_(std::move(asked)),
        path_(std::move(path)),
        options_(std::move(options)) {}
  task<downloaded> start(tasks::limits within) &&;

 private:
  client by_;
  client_request asked_;
  std::string path_;
  download_options options_;
};
using downloading = tasks::limited_task<download_call>;

// Downloads to the file at `path`. Await it in a handler or a task, optionally with .timeout(span)
// and .stop(token). The bytes are written to path + ".part" at first; path + ".part.info" names
// their version. When the file is complete, one rename gives it its name, and replaces a file that
// had that name.
//
// If the connection ends before the end of the body, or if an earlier call, of this or an earlier
// process, has left a part, only the rest is requested: with Range, and with If-Range, so that the
// server sends the whole file if it has changed. That needs a strong ETag, or a Last-Modified that
// is a second older than the answer; without either each attempt starts over. An answer that does
// not fit the part (another range, length or ETag; 412; 416) also makes it start over, once. The
// length is checked.
//
// Thread: none is blocked; the file is opened, renamed and put on the disk on the threads for
// blocking(). Errors: as client::send(); client_error: not_downloaded (status() is the server's
// answer), part_in_use (another download writes the same part, or was cancelled a moment ago),
// body_too_large; io_error of the file, for instance a full disk; usage_error for a request that is
// no GET, has a body, or has a Range or If-Range of its own; option_error. The part stays after an
// error and after a cancellation, for the next call.
//
// Example (declarations):
//     troupe::task<> get(troupe::http::client web) {
//       troupe::http::download_options options;
//       options.progress = [](const troupe::http::download_progress& now) {
//         std::cout << now.bytes << " of " << now.total.value_or(0) << '\n';
//       };
//       auto asked = troupe::http::download(web, "https://example.org/big.iso", "/tmp/big.iso",
//                                           std::move(options));
//       const auto got = co_await std::move(asked).timeout(std::chrono::hours(1));
//       std::cout << got.bytes << " bytes, " << got.kept << " were there\n";
//     }
downloading download(client by, client_request asked, std::string path,
                     download_options options = {});
downloading download(client by, std::string url, std::string path, download_options options = {});

}  // namespace troupe::http
