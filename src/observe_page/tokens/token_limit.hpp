// token_limit: how many wrong tokens a client may send.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace troupe::observe_page {

// Counts the wrong tokens of each client within a minute, which begins with the first one. Keeps at
// most clients_max counts; one more takes the place of the oldest. Thread: any.
class token_limit {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr int wrong_max = 10;
  static constexpr std::chrono::seconds span{60};
  static constexpr std::size_t clients_max = 1024;

  // How long the client must wait, rounded up; 0: it may send a token.
  std::chrono::seconds blocked_for(const std::string& client, clock::time_point now);
  // The client has sent a wrong token.
  void count(const std::string& client, clock::time_point now);
  std::size_t size();

 private:
  struct wrong_tokens {
    clock::time_point since;
    int count = 0;
  };

  std::mutex mutex_;
  std::map<std::string, wrong_tokens> clients_;  // guarded by mutex_
};

}  // namespace troupe::observe_page
