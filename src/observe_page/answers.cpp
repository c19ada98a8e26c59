#include "observe_page/answers.hpp"

#include <utility>

#include "troupe/actor/blocking.hpp"
#include "troupe/task/future.hpp"

namespace troupe::observe_page {

bool is_refusal(std::string_view answer) noexcept { return answer.starts_with("{\"error\":"); }

task<std::shared_ptr<const std::string>> answers::to(std::shared_ptr<answers> of,
                                                     std::string question) {
  const auto lock = co_await of->asking_.lock();
  const clock::time_point now = clock::now();
  std::erase_if(of->kept_, [&](const auto& one) { return one.second.until <= now; });
  if (const auto found = of->kept_.find(question); found != of->kept_.end())
    co_return found->second.text;
  future<std::string> later = blocking([of, question] { return of->ask_(question); });
  std::string text = co_await std::move(later);
  if (is_refusal(text)) throw no_answer(text);
  const auto shared = std::make_shared<const std::string>(std::move(text));
  const clock::time_point end = clock::now();
  if (of->kept_.size() < kept_max)
    of->kept_[std::move(question)] = {
        shared, end + std::max<clock::duration>(kept_at_least, 20 * (end - now))};
  co_return shared;
}

}  // namespace troupe::observe_page
