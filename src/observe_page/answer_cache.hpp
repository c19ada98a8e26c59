// answer_cache: the answers of a program about itself, for all readers of its page.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "troupe/sync/mutex.hpp"
#include "troupe/task/task.hpp"

namespace troupe::observe_page {

// The program cannot be asked any longer, or refuses the question. The text is the reason.
struct no_answer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the answer to one question of docs/guide/observing.md. Blocks. Throws no_answer.
using asker = std::function<std::string(const std::string& question)>;

// Asks one question after the other, on a thread where it may block. An answer is kept for as long
// as questions of many readers come soon one after the other, and for 20 times as long as it took,
// which bounds the work for any number of readers. Thread: any.
class answer_cache : public std::enable_shared_from_this<answer_cache> {
 public:
  explicit answer_cache(asker asks) : ask_(std::move(asks)) {}

  // Throws no_answer.
  static task<std::shared_ptr<const std::string>> to(std::shared_ptr<answer_cache> self,
                                                     std::string question);

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kept_at_least{700};
  static constexpr std::size_t kept_max = 64;
  struct kept {
    std::shared_ptr<const std::string> text;
    clock::time_point until;
  };

  mutex asking_;
  const asker ask_;
  std::map<std::string, kept, std::less<>> kept_;  // guarded by asking_
};

// Whether an answer is a JSON object with the reason why there is no answer.
bool is_refusal(std::string_view answer) noexcept;

}  // namespace troupe::observe_page
