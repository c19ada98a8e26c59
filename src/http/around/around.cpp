#include "troupe/http/around/around.hpp"

#include "troupe/context/context.hpp"
#include "troupe/http/values/error_page.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

namespace {

response page_for(const request& asked, const status_error& e) {
  return error_page(asked, e.status(), e.detail());
}

task<response> ready(response answer) { co_return answer; }

// A handler that is no coroutine, behind something that waits.
task<response> run_plain(const route_call& handler, request& asked, const path_values& values) {
  if (handler.reads_body) co_await asked.read_all();
  response answer;
  try {
    const context_scope memory_scope(asked.memory());
    if (!handler.run(asked, values, answer)) answer = response(404);
  } catch (const status_error& e) {
    answer = page_for(asked, e);
  }
  co_return answer;
}

task<response> run_waiting(const route_call& handler, request& asked, const path_values& values) {
  std::optional<task<response>> later;
  response answer;
  try {
    if (handler.start(asked, values, later)) {
      answer = co_await std::move(*later);
    } else {
      answer = response(404);
    }
  } catch (const status_error& e) {
    answer = page_for(asked, e);
  }
  co_return answer;
}

class layered final : public route_call {
 public:
  layered(std::unique_ptr<const route_call> handler, std::shared_ptr<const around_call> function)
      : handler_(std::move(handler)), function_(std::move(function)), form_(function_->which()) {
    waits = handler_->waits || form_ == around_call::form::around;
    takes_request = true;
    reads_body = handler_->reads_body;
    parameters = handler_->parameters;
  }

  bool run(request& asked, const path_values& values, response& answer) const override {
    if (form_ == around_call::form::before) {
      if (std::optional<response> replacement = function_->before(asked)) {
        answer = std::move(*replacement);
        return true;
      }
      return handler_->run(asked, values, answer);
    }
    try {
      if (!handler_->run(asked, values, answer)) answer = response(404);
    } catch (const status_error& e) {
      answer = page_for(asked, e);
    }
    function_->after(asked, answer);
    return true;
  }

  bool start(request& asked, const path_values& values,
             std::optional<task<response>>& later) const override {
    switch (form_) {
      case around_call::form::before:
        if (std::optional<response> replacement = function_->before(asked)) {
          later.emplace(ready(std::move(*replacement)));
          return true;
        }
        return handler_->start(asked, values, later);
      case around_call::form::after:
        later.emplace(run_and_change(asked, values));
        return true;
      case around_call::form::around:
        later.emplace(function_->around(asked, next_handler(*handler_, values)));
        return true;
    }
    return false;
  }

 private:
  task<response> run_and_change(request& asked, const path_values& values) const {
    response answer = co_await run_waiting(*handler_, asked, values);
    function_->after(asked, answer);
    co_return answer;
  }

  const std::unique_ptr<const route_call> handler_;
  const std::shared_ptr<const around_call> function_;
  const around_call::form form_;
};

}  // namespace

task<response> next_handler::operator()(request& asked) const {
  return handler_->waits ? run_waiting(*handler_, asked, *values_)
                         : run_plain(*handler_, asked, *values_);
}

std::unique_ptr<const route_call> put_around(std::unique_ptr<const route_call> handler,
                                             std::shared_ptr<const around_call> function) {
  return std::make_unique<layered>(std::move(handler), std::move(function));
}

}  // namespace troupe::http
