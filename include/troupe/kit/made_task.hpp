// made_task: the result of a user's callable, as a task. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <type_traits>

#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe::kit {

// The result of a callable, as a task: it may be a task, another awaitable, or a value.
template <class Value, class Function, class... Args>
task<Value> as_made_task(Function& function, Args&... args) {
  using given = std::invoke_result_t<Function&, Args&...>;
  if constexpr (tasks::is_task<given>) {
    return function(args...);
  } else if constexpr (tasks::awaitable<given>) {
    return tasks::make_branch(function(args...));
  } else {
    return [](Value value) -> task<Value> { co_return value; }(function(args...));
  }
}

}  // namespace troupe::kit
