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
  response made;
  try {
    const context_scope here(asked.memory());
    if (!handler.run(asked, values, made)) made = response(404);
  } catch (const status_error& e) {
    made = page_for(asked, e);
  }
  co_return made;
}

task<response> run_waiting(const route_call& handler, request& asked, const path_values& values) {
  std::optional<task<response>> later;
  response made;
  try {
    if (handler.start(asked, values, later)) {
      made = co_await std::move(*later);
    } else {
      made = response(404);
    }
  } catch (const status_error& e) {
    made = page_for(asked, e);
  }
  co_return made;
}

class layered final : public route_call {
 public:
  layered(std::unique_ptr<const route_call> handler, std::shared_ptr<const around_call> what)
      : handler_(std::move(handler)), what_(std::move(what)), form_(what_->which()) {
    waits = handler_->waits || form_ == around_call::form::around;
    takes_request = true;
    reads_body = handler_->reads_body;
    parameters = handler_->parameters;
  }

  bool run(request& asked, const path_values& values, response& answer) const override {
    if (form_ == around_call::form::before) {
      if (std::optional<response> made = what_->before(asked)) {
        answer = std::move(*made);
        return true;
      }
      return handler_->run(asked, values, answer);
    }
    try {
      if (!handler_->run(asked, values, answer)) answer = response(404);
    } catch (const status_error& e) {
      answer = page_for(asked, e);
    }
    what_->after(asked, answer);
    return true;
  }

  bool start(request& asked, const path_values& values,
             std::optional<task<response>>& later) const override {
    switch (form_) {
      case around_call::form::before:
        if (std::optional<response> made = what_->before(asked)) {
          later.emplace(ready(std::move(*made)));
          return true;
        }
        return handler_->start(asked, values, later);
      case around_call::form::after:
        later.emplace(run_and_change(asked, values));
        return true;
      case around_call::form::around:
        later.emplace(what_->around(asked, next_handler(*handler_, values)));
        return true;
    }
    return false;
  }

 private:
  task<response> run_and_change(request& asked, const path_values& values) const {
    response made = co_await run_waiting(*handler_, asked, values);
    what_->after(asked, made);
    co_return made;
  }

  const std::unique_ptr<const route_call> handler_;
  const std::shared_ptr<const around_call> what_;
  const around_call::form form_;
};

}  // namespace

task<response> next_handler::operator()(request& asked) const {
  return is_->waits ? run_waiting(*is_, asked, *values_) : run_plain(*is_, asked, *values_);
}

std::unique_ptr<const route_call> put_around(std::unique_ptr<const route_call> handler,
                                             std::shared_ptr<const around_call> what) {
  return std::make_unique<layered>(std::move(handler), std::move(what));
}

}  // namespace troupe::http
