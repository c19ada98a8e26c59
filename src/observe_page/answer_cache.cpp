#include "observe_page/answer_cache.hpp"

#include <utility>

#include "troupe/actor/blocking.hpp"
#include "troupe/task/future.hpp"

namespace troupe::observe_page {

bool is_refusal(std::string_view answer) noexcept { return answer.starts_with("{\"error\":"); }

task<std::shared_ptr<const std::string>> answer_cache::to(std::shared_ptr<answer_cache> self,
                                                          std::string question) {
  const auto lock = co_await self->asking_.lock();
  const clock::time_point now = clock::now();
  std::erase_if(self->kept_, [&](const auto& entry) { return entry.second.until <= now; });
  if (const auto found = self->kept_.find(question); found != self->kept_.end())
    co_return found->second.text;
  future<std::string> later = blocking([self, question] { return self->ask_(question); });
  std::string text = co_await std::move(later);
  if (is_refusal(text)) throw no_answer(text);
  const auto shared = std::make_shared<const std::string>(std::move(text));
  const clock::time_point end = clock::now();
  if (self->kept_.size() < kept_max)
    self->kept_[std::move(question)] = {
        shared, end + std::max<clock::duration>(kept_at_least, 20 * (end - now))};
  co_return shared;
}

}  // namespace troupe::observe_page
