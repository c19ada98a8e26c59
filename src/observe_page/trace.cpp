#include "observe_page/trace.hpp"

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "observe_page/answer_cache.hpp"
#include "observe_page/refusal.hpp"
#include "troupe/http/writer.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe::observe_page {
namespace {

std::optional<int> read_seconds(std::string_view text) {
  int seconds = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (bad != std::errc{} || end != text.data() + text.size() || seconds < 1 ||
      seconds > trace_seconds_max)
    return std::nullopt;
  return seconds;
}

using piece = std::array<char, 65536>;

// The answer is one line, and the socket sends nothing after it.
task<> pass_on(http::body_writer& writer, std::shared_ptr<unix_stream> from, std::string begin) {
  bool is_whole = begin.ends_with('\n');
  co_await writer.write(begin);
  const auto bytes = std::make_unique<piece>();
  while (!is_whole) {
    const std::size_t count = co_await from->read(std::span<char>(*bytes));
    const std::string_view more(bytes->data(), count);
    if (count == 0) throw no_answer("the program has ended while it sent its trace");
    is_whole = more.ends_with('\n');
    co_await writer.write(more);
  }
}

task<http::response> ask(std::string path, int seconds, std::stop_token gone) {
  const auto from = std::make_shared<unix_stream>(unix_stream::connect(path));
  co_await from->write_all("trace " + std::to_string(1000 * seconds) + "\n");
  const auto bytes = std::make_unique<piece>();
  const std::size_t count = co_await from->read(std::span<char>(*bytes)).stop(gone);
  std::string begin(bytes->data(), count);
  if (begin.empty() || is_refusal(begin)) {
    auto refused = refusal(503, begin.empty() ? "the program has ended\n" : std::move(begin));
    co_return std::move(refused);
  }
  auto answer = http::response::stream("application/json",
                                       [from, begin = std::move(begin)](http::body_writer& writer) {
                                         return pass_on(writer, from, begin);
                                       });
  answer.field("Content-Disposition", "attachment; filename=\"trace.json\"");
  co_return std::move(answer);
}

}  // namespace

task<http::response> trace(std::function<std::string()> socket, std::string seconds,
                           std::stop_token gone) {
  const std::optional<int> time = read_seconds(seconds);
  std::optional<http::response> answer;
  if (!time) {
    answer =
        refusal(400, "seconds is a number from 1 to " + std::to_string(trace_seconds_max) + "\n");
    co_return std::move(*answer);
  }
  try {
    answer = co_await ask(socket(), *time, std::move(gone));
  } catch (const no_answer& failed) {
    answer = refusal(503, failed.what());
  } catch (const io_error& failed) {
    answer = refusal(503, std::string(failed.what()) + "\n");
  }
  co_return std::move(*answer);
}

}  // namespace troupe::observe_page
