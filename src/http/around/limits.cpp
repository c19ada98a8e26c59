#include "troupe/http/around/limits.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "http/behind_proxy/address.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fault.hpp"
#include "troupe/http/values/error_page.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::http {

namespace {

response refuse(const request& asked, int status, std::chrono::nanoseconds wait) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return error_page(asked, status)
      .field("Retry-After", std::to_string(std::max<std::int64_t>(1, seconds)));
}

}  // namespace

std::optional<std::string> peer_key(const request& asked) {
  const std::optional<endpoint> client = asked.client();
  if (!client) return std::string();
  return client_key(*client);
}

std::optional<response> rate_per::operator()(const request& asked) const {
  const std::optional<std::string> key = key_(asked);
  if (!key) return std::nullopt;
  const rate_limiter limiter = limiter_.of(*key);
  if (limiter.try_acquire()) return std::nullopt;
  return refuse(asked, 429, limiter.wait_time());
}

task<response> at_a_time::operator()(request& asked, next_handler next) const {
  const std::optional<semaphore::permit> permit = free_->try_acquire();
  if (!permit) co_return refuse(asked, 503, std::chrono::seconds(1));
  co_return co_await next(asked);
}

// How many requests of each key are under way. Thread: any.
struct at_a_time_per::counts {
  explicit counts(std::uint64_t requests) : most(requests) {}

  // One request of a key, as long as it exists.
  class lease {
   public:
    lease(counts& shared, std::string key) : counts_(shared), key_(std::move(key)) {
      const std::lock_guard lock(counts_.mutex);
      std::uint64_t& count = counts_.under_way[key_];
      is_taken_ = count < counts_.most;
      if (is_taken_) ++count;
    }
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() {
      if (!is_taken_) return;
      const std::lock_guard lock(counts_.mutex);
      const auto at = counts_.under_way.find(key_);
      if (--at->second == 0) counts_.under_way.erase(at);
    }
    bool is_taken() const noexcept { return is_taken_; }

   private:
    counts& counts_;
    const std::string key_;
    bool is_taken_ = false;
  };

  const std::uint64_t most;
  std::mutex mutex;
  std::unordered_map<std::string, std::uint64_t> under_way;
};

at_a_time_per::at_a_time_per(std::uint64_t requests, request_key key)
    : counts_(std::make_shared<counts>(requests)), key_(std::move(key)) {
  if (requests == 0)
    throw usage_error("troupe: http::at_a_time_per: 0 requests at a time: allow 1 at least");
}

task<response> at_a_time_per::operator()(request& asked, next_handler next) const {
  std::optional<std::string> key = key_(asked);
  if (!key) co_return co_await next(asked);
  const counts::lease mine(*counts_, std::move(*key));
  if (!mine.is_taken()) co_return refuse(asked, 429, std::chrono::seconds(1));
  co_return co_await next(asked);
}

task<response> time_limit::operator()(request& asked, next_handler next) const {
  tasks::task_limits limits;
  limits.at_most = at_most_;
  response answer;
  bool is_late = false;
  try {
    answer = co_await tasks::run_within(next(asked), std::move(limits));
  } catch (const timed_out&) {
    is_late = true;
  }
  if (is_late) answer = refuse(asked, 503, at_most_);
  co_return answer;
}

task<response> overload_as_503::operator()(request& asked, next_handler next) const {
  std::optional<std::chrono::nanoseconds> wait;
  response answer;
  try {
    answer = co_await next(asked);
  } catch (const error& e) {
    wait = e.try_again_in();
    if (!wait || asked.is_lost()) throw;
  }
  if (wait) answer = refuse(asked, 503, *wait);
  co_return answer;
}

task<response> recover::operator()(request& asked, next_handler next) const {
  std::exception_ptr thrown;
  std::optional<std::chrono::nanoseconds> wait;
  response answer;
  try {
    answer = co_await next(asked);
  } catch (const refused&) {
    throw;
  } catch (const cancelled&) {
    throw;
  } catch (const error& e) {
    if (asked.is_lost()) throw;
    wait = e.try_again_in();
    thrown = std::current_exception();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) {
    tell_(asked, std::move(thrown));
    answer = wait ? refuse(asked, 503, *wait) : error_page(asked, 500);
  }
  co_return answer;
}

}  // namespace troupe::http
