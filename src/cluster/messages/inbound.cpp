#include "cluster/messages/inbound.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <typeinfo>
#include <utility>

#include "durable/core/exception_text.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

// The form in which a caller reads an exception that travelling() has let pass.
std::string frame_of(const std::exception_ptr& why) {
  const auto with_text = [](answer_kind kind, const std::exception& e) {
    return write_answer({kind, {}, e.what()});
  };
  try {
    std::rethrow_exception(why);
  } catch (const answer_too_late& e) {
    return with_text(answer_kind::lost, e);
  } catch (const error& e) {
    if (e.kind() == failure::unreachable) return with_text(answer_kind::not_here, e);
    return with_text(e.kind() == failure::malformed ? answer_kind::malformed : answer_kind::lost,
                     e);
  } catch (const timed_out& e) {
    return with_text(answer_kind::timed_out, e);
  } catch (const cancelled& e) {
    return with_text(answer_kind::cancelled, e);
  } catch (const remote_exception& e) {
    return write_answer({answer_kind::exception, e.type(), e.what()});
  } catch (...) {
    const durable::handler_failed known = durable::parts::failure_of(why);
    return write_answer({answer_kind::exception, known.type(), known.what()});
  }
}

}  // namespace

std::string readable_name(const std::type_info& type) {
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  return name == nullptr ? type.name() : name.get();
}

answer_too_late::answer_too_late()
    : error(failure::lost,
            "troupe: cluster: the handler has run, and its node lost the actor before the answer") {
}

served::served(state_ref on, std::string reply, semaphore::permit permit) noexcept
    : on_(std::move(on)), reply_(std::move(reply)), permit_(std::move(permit)) {}
served::served(state_ref on, std::unique_ptr<answer_to> answer) noexcept
    : on_(std::move(on)), answer_(std::move(answer)) {}
served::~served() {
  if (wants_answer())
    fail(std::make_exception_ptr(error(
        failure::lost, "troupe: cluster: the actor has ended before it answered the message")));
}
void served::give(const bytes& value) noexcept {
  if (answer_ != nullptr) {
    const reading_on reading(on_);
    std::exchange(answer_, nullptr)->give(value);
  } else if (!reply_.empty()) {
    try {
      core_of(*on_).answer(std::exchange(reply_, {}),
                           write_answer({answer_kind::value, {}, as_text(value)}));
    } catch (...) {
      // Without memory the asker gets no answer, and its time ends.
    }
  }
}
void served::fail(const std::exception_ptr& why) noexcept {
  if (answer_ != nullptr) {
    std::exchange(answer_, nullptr)->fail(why);
  } else if (!reply_.empty()) {
    try {
      core_of(*on_).answer(std::exchange(reply_, {}), frame_of(why));
    } catch (...) {
    }
  }
}

task<bytes> within_limits(const served& message, task<bytes> answer) {
  if (message.deadline_ns == 0 && !message.trace) return answer;
  tasks::task_limits limits;
  if (message.deadline_ns != 0)
    limits.at_most =
        std::chrono::nanoseconds(message.deadline_ns) - runtime_of(*message.node()).now();
  limits.trace = message.trace;
  return tasks::run_within(std::move(answer), std::move(limits));
}

task<> inbound::open() {
  const std::weak_ptr<node_state> weak = core_.weak_node();
  const auto take_one = [this, weak](incoming message) -> task<> {
    state_ref node = weak.lock();
    if (node == nullptr) co_return;
    auto takes = take(this, std::move(node), std::move(message));
    co_await std::move(takes);
  };
  const auto take_at_once = [this, weak](const incoming& message) {
    const state_ref node = weak.lock();
    return node != nullptr && take_now(node, message);
  };
  auto opens = core_.way().take(core_.subject_of(core_.self().id), {},
                                transport::taker(take_one, take_at_once));
  co_await std::move(opens);
}

// A refusal is sent before the next message is taken, so that a node that leaves has refused all
// that it did not take.
task<> inbound::take(inbound* self, state_ref node, incoming message) {
  const std::optional<request_frame> request = read_request(message.bytes);
  std::string refusal;
  if (!request) {
    refusal = write_answer({answer_kind::malformed, {}, "the bytes are no message of troupe"});
  } else {
    auto waits = self->permits_->acquire();
    auto permit = co_await std::move(waits);
    self->served_.add(1);
    refusal = self->dispatch(node, *request, message.reply, std::move(permit));
  }
  if (refusal.empty() || message.reply.empty()) co_return;
  auto refuses = self->core_.way().answer(std::move(message.reply), std::move(refusal));
  co_await std::move(refuses);
}

std::string inbound::dispatch(const state_ref& node, const request_frame& request,
                              const std::string& reply, semaphore::permit permit) {
  using enum request_frame::target;
  if (request.to == durable) return durable_.serve_message(request, reply, std::move(permit));
  if (request.to == cycle) return durable_.serve_cycle(request, reply, std::move(permit));
  return serve(node, request, reply, std::move(permit));
}

// Of a tell, to which no refusal is sent, while it need not wait.
bool inbound::take_now(const state_ref& node, const incoming& message) {
  if (!message.reply.empty()) return false;
  const std::optional<request_frame> request = read_request(message.bytes);
  if (!request) return true;
  using enum request_frame::target;
  if (request->to == durable || request->to == cycle) return false;
  std::optional<semaphore::permit> permit = permits_->try_acquire();
  if (!permit) return false;
  served_.add(1);
  static_cast<void>(serve(node, *request, message.reply, std::move(*permit)));
  return true;
}

std::string inbound::serve(const state_ref& node, const request_frame& request,
                           const std::string& reply, semaphore::permit permit) {
  using enum answer_kind;
  const auto refusal = [](answer_kind kind, std::string_view text) {
    return write_answer({kind, {}, text});
  };
  const class_table* const kind = core_.find_kind(request.kind);
  if (kind == nullptr) return refusal(unknown_class, {});
  const auto method = std::ranges::find(kind->methods, request.method, &method_entry::name);
  if (method == kind->methods.end()) return refusal(unknown_method, {});
  if (method->signature != request.signature) return refusal(other_signature, method->shape);
  const bool is_of_member = request.to == request_frame::target::member;
  const address target{kind,
                       std::string(request.key),
                       is_of_member ? own_shard : shard_of(kind->name, request.key),
                       {}};
  auto message = std::make_unique<served>(node, reply, std::move(permit));
  // The clock's range, whatever time the other node has sent.
  constexpr std::int64_t remaining_us_max = 1'000'000'000'000;
  if (request.remaining_us > 0)
    message->deadline_ns =
        core_.now_ns() + 1'000 * std::min(request.remaining_us, remaining_us_max);
  message->trace = read_trace(request.trace);
  std::string why;
  try {
    if (method->serve(node, target, as_bytes(request.arguments), message)) return {};
  } catch (const troupe::error& e) {
    why = e.what();
  }
  if (message == nullptr) return {};
  message->forget();
  return why.empty() ? refusal(not_here, {}) : refusal(malformed, why);
}

}  // namespace troupe::cluster::parts
