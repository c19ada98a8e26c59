// Callers that wait for an answer get it outside of the engine's lock.
#include "durable/memory/answer_list.hpp"

#include <utility>

namespace troupe::durable::parts {

void give_all(std::unique_ptr<answer_to>& first, std::span<const std::byte> value) noexcept {
  for (auto answer = std::move(first); answer != nullptr;) {
    auto next = std::move(answer->next);
    answer->give(value);
    answer = std::move(next);
  }
}

void fail_all(std::unique_ptr<answer_to>& first, const std::exception_ptr& why) noexcept {
  for (auto answer = std::move(first); answer != nullptr;) {
    auto next = std::move(answer->next);
    answer->fail(why);
    answer = std::move(next);
  }
}

}  // namespace troupe::durable::parts
