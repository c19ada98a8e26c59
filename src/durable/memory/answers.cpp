// Who waits for an answer is told outside of the engine's lock.
#include "durable/memory/answers.hpp"

#include <utility>

namespace troupe::durable::parts {

void give_all(std::unique_ptr<answer_to>& first, std::span<const std::byte> value) noexcept {
  for (auto one = std::move(first); one != nullptr;) {
    auto next = std::move(one->next);
    one->give(value);
    one = std::move(next);
  }
}

void fail_all(std::unique_ptr<answer_to>& first, const std::exception_ptr& why) noexcept {
  for (auto one = std::move(first); one != nullptr;) {
    auto next = std::move(one->next);
    one->fail(why);
    one = std::move(next);
  }
}

}  // namespace troupe::durable::parts
