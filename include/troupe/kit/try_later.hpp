// try_later: the errors of services that refuse a call for some time.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <optional>
#include <string>

#include "troupe/base/error.hpp"
#include "troupe/base/time_span.hpp"

namespace troupe {

// A service refuses calls for a known time. retry() waits at least that long.
// Throw it, or a class that derives from it, for a service that answers with a time.
//
// Example:
//     try {
//       throw troupe::try_later("the service is being restarted", std::chrono::seconds(3));
//     } catch (const troupe::try_later& e) {
//       std::cout << e.what() << ", try again in " << e.retry_after().count() << " ns\n";
//     }
class try_later : public error {
 public:
  try_later(const std::string& text, time_span retry_after)
      : error(text), retry_after_(retry_after) {}
  // How long to wait before the next attempt, from the throw on.
  std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }
  verdict judged() const noexcept override {
    return {verdict::party::upstream, verdict::effect::none, verdict::again::later};
  }
  std::optional<std::chrono::nanoseconds> try_again_in() const noexcept override {
    return retry_after_;
  }

 private:
  std::chrono::nanoseconds retry_after_;
};

}  // namespace troupe
