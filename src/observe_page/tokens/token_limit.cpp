#include "observe_page/tokens/token_limit.hpp"

#include <algorithm>

namespace troupe::observe_page {

std::chrono::seconds token_limit::blocked_for(const std::string& client, clock::time_point now) {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.count < wrong_max) return std::chrono::seconds(0);
  const auto left = std::chrono::ceil<std::chrono::seconds>(found->second.since + span - now);
  return std::max(left, std::chrono::seconds(0));
}

void token_limit::count(const std::string& client, clock::time_point now) {
  std::lock_guard lock(mutex_);
  auto found = clients_.find(client);
  if (found == clients_.end() && clients_.size() == clients_max) {
    const auto since = [](const auto& entry) { return entry.second.since; };
    clients_.erase(std::ranges::min_element(clients_, {}, since));
  }
  if (found == clients_.end()) found = clients_.emplace(client, wrong_tokens{now, 0}).first;
  if (now - found->second.since >= span) found->second = {now, 0};
  ++found->second.count;
}

std::size_t token_limit::size() {
  std::lock_guard lock(mutex_);
  return clients_.size();
}

}  // namespace troupe::observe_page
