#include "troupe/http/client/download.hpp"

#include <algorithm>
#include <ctime>
#include <exception>

#include "base/text/zero_byte.hpp"
#include "http/client/downloads/part_file.hpp"
#include "http/client/exchange.hpp"
#include "http/h1/date.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/file.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {

namespace {

constexpr std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);
constexpr int restarts_max = 1;  // because of answers that do not fit the part

bool is_passing(int status) noexcept {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

// The value for If-Range: a strong ETag, or a time that no later version can have as well.
std::string validator_of(const client_response& answer) {
  const std::string_view tag = answer.field("ETag");
  if (tag.size() >= 2 && tag.starts_with('"') && tag.ends_with('"')) return std::string(tag);
  const std::string_view changed = answer.field("Last-Modified");
  const std::time_t now = kit::wall_now();
  const auto then = read_date(changed, now), sent = read_date(answer.field("Date"), now);
  return then && sent && *sent - *then >= 1 ? std::string(changed) : "";
}

class work {
 public:
  work(client by, client_request asked, std::string path, download_options options)
      : by_(std::move(by)),
        asked_(std::move(asked)),
        path_(std::move(path)),
        options_(std::move(options)) {}
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  // The caller may download again at once. Closing would not do: io_uring releases the file of a
  // write that has completed a moment later.
  ~work() {
    if (file_.is_open() && !is_part_used_) unlock_part(file_.fd());
  }

  task<downloaded> run() {
    check();
    co_await open();
    for (;;) {
      failed_ = nullptr;
      const std::uint64_t before = furthest_;
      const bool whole = co_await ask();
      if (whole) break;
      failures_ = furthest_ > before ? 0 : failures_;
      if (failed_ == nullptr) continue;
      if (++failures_ >= options_.attempts) std::rethrow_exception(failed_);
      co_await sleep_for(pause());
    }
    auto finish = [part = std::move(file_), path = path_, sync = options_.sync]() mutable {
      const file held = std::move(part);
      finish_part(held.fd(), path, sync);
    };
    co_await blocking(std::move(finish));
    result_.bytes = bytes_;
    result_.length_checked = version_.total.has_value();
    co_return std::move(result_);
  }

 private:
  void check() {
    if (asked_.method() != "GET" || client_access::has_body(asked_))
      throw usage_error("troupe: http::download: the request must be a GET without a body");
    for (const std::string_view own : {"Range", "If-Range"}) {
      if (names_field(client_access::fields(asked_), own))
        throw usage_error("troupe: http::download: the field " + std::string(own) +
                          " is the download's own");
    }
    if (options_.attempts == 0 || options_.pause.count() < 0)
      throw option_error(
          "troupe: http::download_options: attempts must be at least 1, and the "
          "pause must not be negative");
    if (path_.empty())
      throw option_error("troupe: http::download: the path of the file is empty; name a file");
    base::refuse_zero_byte(path_, "http::download", "the path");
    // Redirects and errors are looked up by the URL that was asked for.
    static_cast<void>(url::parse(asked_.url()));
  }

  std::chrono::nanoseconds pause() const {
    std::chrono::nanoseconds span = options_.pause;
    for (unsigned i = 1; i < failures_ && span < longest_pause; ++i) span *= 2;
    return std::min(span, longest_pause);
  }

  task<> open() {
    auto opens = [path = path_, url = asked_.url()] { return open_part(path, url); };
    part_file part = co_await blocking(std::move(opens));
    if (!part.opened.is_open())
      throw client_error(client_failure::part_in_use, asked_.url(),
                         "another download writes " + path_ + ".part");
    file_ = std::move(part.opened);
    version_ = std::move(part.version);
    bytes_ = furthest_ = result_.kept = part.bytes;
  }

  task<> restart(part_version version) {
    version_ = std::move(version);
    bytes_ = 0;
    result_.kept = 0;
    // The function may outlive a download that is cancelled. It therefore keeps the file open, but
    // only until it returns, or the part would be locked when the download has ended.
    auto restarts = [part = file_.share(), path = path_, to = version_]() mutable {
      const file held = std::move(part);
      restart_part(held.fd(), path, to);
    };
    is_part_used_ = true;
    co_await blocking(std::move(restarts));
    is_part_used_ = false;
  }
  // The part and the server's answer do not belong together.
  task<> begin_anew(const client_response& answer, const char* why) {
    if (restarts_++ >= restarts_max)
      throw client_error(client_failure::bad_response, answer.url(), why);
    part_version none;
    none.url = asked_.url();
    co_await restart(std::move(none));
  }

  // Keeps an error after which another request makes sense; throws others.
  void keep_failure() {
    if (this_call::remaining().count() <= 0) throw;
    try {
      throw;
    } catch (const client_error& e) {
      const client_failure why = e.reason();
      if (why != client_failure::truncated && why != client_failure::closed &&
          why != client_failure::too_slow && why != client_failure::reset &&
          why != client_failure::refused)
        throw;
    } catch (const tls_error& e) {
      if (e.reason() != tls_failure::truncated) throw;
    } catch (const io_error&) {
    } catch (const timed_out&) {
    } catch (const origin_full&) {
    } catch (const resolve_error&) {
    }
    failed_ = std::current_exception();
  }

  // Whether the request is for the rest of the part, and not for the whole file.
  bool resumes() const noexcept { return bytes_ > 0 && !version_.validator.empty(); }

  client_request next_request() {
    client_request request("GET", asked_.url());
    client_access::fields(request) = client_access::fields(asked_);
    if (!names_field(client_access::fields(request), "Accept-Encoding"))
      request.field("Accept-Encoding", "identity");
    if (resumes()) request.range(bytes_).field("If-Range", version_.validator);
    return request;
  }

  // Sends one request and writes the answer's bytes. Returns whether the file is complete.
  task<bool> ask() {
    client_request asked = next_request();
    ++result_.requests;
    std::optional<client_response> answer;
    try {
      answer.emplace(co_await by_.send(std::move(asked)));
    } catch (...) {
      keep_failure();
    }
    if (!answer) co_return false;
    result_.url = answer->url();
    const bool is_resumed = resumes();
    const int status = answer->status();
    if (is_resumed && status == 416) co_return co_await is_whole(*answer);
    if (is_resumed && status == 412) {
      co_await begin_anew(*answer, "it answers 412 to a request without a condition");
      co_return false;
    }
    if (is_resumed && status == 206) {
      const char* const wrong = misfit(*answer);
      if (wrong == nullptr) co_return co_await write(*answer);
      co_await begin_anew(*answer, wrong);
      co_return false;
    }
    if (status == 200) {
      check_size(*answer, answer->length().value_or(0));
      part_version version;
      version.url = asked_.url();
      version.validator = validator_of(*answer);
      version.total = answer->length();
      co_await restart(std::move(version));
      co_return co_await write(*answer);
    }
    const client_error refused(client_failure::not_downloaded, answer->url(),
                               "it answered " + std::to_string(status), fault::none, status);
    if (!is_passing(status)) throw refused;
    failed_ = std::make_exception_ptr(refused);
    co_return false;
  }

  // Whether, by the answer, the part is already the whole file.
  task<bool> is_whole(const client_response& answer) {
    const std::string_view range = answer.field("Content-Range");
    if (range == "bytes */" + std::to_string(bytes_) && version_.total.value_or(bytes_) == bytes_) {
      version_.total = bytes_;
      co_return true;
    }
    co_await begin_anew(answer, "it has no such range");
    co_return false;
  }

  // Why a 206 is not the continuation of the part; null if it is.
  const char* misfit(const client_response& answer) const {
    const std::optional<content_range> range = answer.range();
    if (!range || range->first != bytes_ || !range->of)
      return "it sent another range than was asked for";
    if (version_.total && *version_.total != *range->of) return "the length has changed on the way";
    if (answer.length().value_or(range->last - range->first + 1) != range->last - range->first + 1)
      return "the length of the range is not that of the body";
    const std::string_view tag = answer.field("ETag");
    if (version_.validator.starts_with('"') && !tag.empty() && tag != version_.validator)
      return "it sent a range of another version";
    return nullptr;
  }

  void check_size(const client_response& answer, std::uint64_t bytes) const {
    if (bytes <= options_.bytes_max) return;
    throw client_error(client_failure::body_too_large, answer.url(),
                       "the file has more than " + std::to_string(options_.bytes_max) +
                           " bytes (download_options::bytes_max)");
  }

  task<bool> write(client_response& from) {
    std::uint64_t end = UINT64_MAX;
    if (from.status() == 206) {
      const content_range range = *from.range();
      check_size(from, *range.of);
      version_.total = range.of;
      end = range.last + 1;
    }
    for (;;) {
      std::string_view piece;
      try {
        piece = co_await from.read();
      } catch (...) {
        keep_failure();
      }
      if (failed_ != nullptr) co_return false;
      if (piece.empty()) break;
      check_size(from, bytes_ + piece.size());
      if (piece.size() > end - bytes_)
        throw client_error(client_failure::bad_response, from.url(), "the body is too long");
      is_part_used_ = true;
      co_await file_.write_all_at(bytes_, piece);
      is_part_used_ = false;
      bytes_ += piece.size();
      furthest_ = std::max(furthest_, bytes_);
      if (options_.progress) options_.progress({bytes_, version_.total});
    }
    if (end != UINT64_MAX && bytes_ != end)
      failed_ = std::make_exception_ptr(client_error(client_failure::truncated, from.url(),
                                                     "the range has fewer bytes than it says"));
    co_return failed_ == nullptr&& bytes_ == version_.total.value_or(bytes_);
  }

  const client by_;
  client_request asked_;
  const std::string path_;
  const download_options options_;
  file file_;
  bool is_part_used_ = false;  // an operation changes it, perhaps longer than this object lives
  part_version version_;
  downloaded result_;
  std::uint64_t bytes_ = 0;     // that are in the part
  std::uint64_t furthest_ = 0;  // the most that ever were
  unsigned failures_ = 0;       // in a row, without a further byte
  int restarts_ = 0;
  std::exception_ptr failed_;  // of the last request
};

task<downloaded> perform(client by, client_request asked, std::string path,
                         download_options options) {
  work mine(std::move(by), std::move(asked), std::move(path), std::move(options));
  co_return co_await mine.run();
}

}  // namespace

task<downloaded> download_call::start(tasks::limits within) && {
  return kit::run_within(
      perform(std::move(by_), std::move(asked_), std::move(path_), std::move(options_)),
      std::move(within), "a download");
}

downloading download(client by, client_request asked, std::string path, download_options options) {
  return downloading(std::in_place, std::move(by), std::move(asked), std::move(path),
                     std::move(options));
}
downloading download(client by, std::string url, std::string path, download_options options) {
  return download(std::move(by), client_request("GET", std::move(url)), std::move(path),
                  std::move(options));
}

}  // namespace troupe::http
