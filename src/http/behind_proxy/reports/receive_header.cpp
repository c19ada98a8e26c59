#include "http/behind_proxy/reports/receive_header.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::http {
namespace {

using event = proxy_header_event;

// After stop(): how long to wait for a header, behind which a request may already be on its way.
constexpr std::chrono::milliseconds last_look{100};

// One read, which ends early when the server stops.
class header_reader {
 public:
  header_reader(time_span at_most, std::stop_token stopping, stream& from) noexcept
      : stopping_(std::move(stopping)), from_(from), until_(at_most.after(now())) {}

  task<std::size_t> read(std::span<char> to) {
    if (!stopping_.stop_requested()) {
      const std::chrono::nanoseconds span = until_ - now();
      bool stops = false;
      std::size_t bytes = 0;
      try {
        bytes = co_await from_.read(to).timeout(span).stop(stopping_);
      } catch (const cancelled&) {
        if (!stopping_.stop_requested()) throw;
        stops = true;
      }
      if (!stops) co_return bytes;
    }
    until_ = std::min(until_, now() + last_look);
    const std::chrono::nanoseconds span = until_ - now();
    co_return co_await from_.read(to).timeout(span);
  }

 private:
  const std::stop_token stopping_;
  stream& from_;
  std::chrono::nanoseconds until_;
};

}  // namespace

task<std::optional<proxy_header>> receive_proxy_header(const proxy_protocol_options& options,
                                                       std::stop_token stopping,
                                                       proxy_header_counters& counts,
                                                       stream& from) {
  header_reader reader(options.header_time, stopping, from);
  proxy_header header;
  std::string came;
  event how = event::accepted;
  try {
    for (;;) {
      const proxy_step step = read_proxy_header(came, options.header_bytes, header);
      if (step.outcome == proxy_step::kind::done) break;
      if (step.outcome == proxy_step::kind::bad) {
        how = event::malformed;
        break;
      }
      const std::size_t before = came.size();
      came.resize(before + step.bytes);
      const std::span<char> room(came.data() + before, step.bytes);
      const std::size_t bytes = co_await reader.read(room);
      came.resize(before + bytes);
      if (bytes != 0) continue;
      how = event::lost;
      break;
    }
  } catch (const timed_out&) {
    how = stopping.stop_requested() ? event::lost : event::timed_out;
  } catch (const io_error&) {
    how = event::lost;
  } catch (const cancelled&) {
    how = event::lost;
  }
  counts.count(how);
  if (how != event::accepted) co_return std::nullopt;
  co_return header;
}

}  // namespace troupe::http
