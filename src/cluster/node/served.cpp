// What comes from other nodes, and how it is answered.
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <typeinfo>
#include <utility>

#include "cluster/node/node_state.hpp"
#include "durable/engine/exception_text.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

// What a caller reads of an exception that travelling() has let pass.
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

std::exception_ptr travelling(const node_state& on) noexcept {
  const std::exception_ptr thrown = std::current_exception();
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr || *type == typeid(remote_exception) || *type == typeid(answer_too_late) ||
      *type == typeid(timed_out) || *type == typeid(cancelled) || on.find_exception(*type))
    return thrown;
  try {
    const durable::handler_failed known = durable::parts::failure_of(thrown);
    return std::make_exception_ptr(remote_exception(known.type(), known.what()));
  } catch (...) {
    return std::current_exception();
  }
}

served::served(state_ref on, std::string reply, semaphore::permit permit) noexcept
    : on_(std::move(on)), reply_(std::move(reply)), permit_(std::move(permit)) {}
served::served(state_ref on, std::unique_ptr<answer_to> here) noexcept
    : on_(std::move(on)), here_(std::move(here)) {}
served::~served() {
  if (wants_answer())
    fail(std::make_exception_ptr(error(
        failure::lost, "troupe: cluster: the actor has ended before it answered the message")));
}
void served::give(const bytes& value) noexcept {
  if (here_ != nullptr) {
    const reading_on here(on_);
    std::exchange(here_, nullptr)->give(value);
  } else if (!reply_.empty()) {
    try {
      on_->answer(std::exchange(reply_, {}),
                  write_answer({answer_kind::value, {}, as_text(value)}));
    } catch (...) {
      // Without memory the asker hears nothing, and its time ends.
    }
  }
}
void served::fail(const std::exception_ptr& why) noexcept {
  if (here_ != nullptr) {
    std::exchange(here_, nullptr)->fail(why);
  } else if (!reply_.empty()) {
    try {
      on_->answer(std::exchange(reply_, {}), frame_of(why));
    } catch (...) {
    }
  }
}

task<bytes> within_limits(const served& message, task<bytes> of) {
  if (message.deadline_ns == 0 && !message.trace) return of;
  tasks::task_limits limits;
  if (message.deadline_ns != 0)
    limits.at_most =
        std::chrono::nanoseconds(message.deadline_ns) - runtime_of(*message.node()).now();
  limits.trace = message.trace;
  return tasks::run_within(std::move(of), std::move(limits));
}

task<> node_state::answer_one(state_ref self, std::string reply, std::string frame) {
  ++self->answering_;
  auto answers = self->way_->answer(std::move(reply), std::move(frame));
  co_await std::move(answers);
  --self->answering_;
}

void node_state::answer(std::string reply, std::string frame) noexcept {
  try {
    const outside_calls none;
    static_cast<void>(
        on_.spawn(answer_one(shared_from_this(), std::move(reply), std::move(frame))));
  } catch (...) {
    // Without memory the asker hears nothing, and its time ends.
  }
}

// What has come from another node. A refusal is sent before the next message is taken, so that a
// node that leaves has refused all that it did not take.
task<> node_state::take(incoming message) {
  const std::optional<request_frame> what = read_request(message.bytes);
  std::string refusal;
  if (!what) {
    refusal = write_answer({answer_kind::malformed, {}, "the bytes are no message of troupe"});
  } else {
    auto waits = may_serve_->acquire();
    auto permit = co_await std::move(waits);
    counts_.served.fetch_add(1, relaxed);
    using enum request_frame::target;
    refusal = what->to == durable  ? serve_durable(*what, message.reply, std::move(permit))
              : what->to == circle ? serve_circle(*what, message.reply, std::move(permit))
                                   : serve(*what, message.reply, std::move(permit));
  }
  if (refusal.empty() || message.reply.empty()) co_return;
  auto refuses = way_->answer(std::move(message.reply), std::move(refusal));
  co_await std::move(refuses);
}

// Of a tell, to which no refusal is sent, while it need not wait.
bool node_state::take_now(const incoming& message) {
  if (!message.reply.empty()) return false;
  const std::optional<request_frame> what = read_request(message.bytes);
  if (!what) return true;
  using enum request_frame::target;
  if (what->to == durable || what->to == circle) return false;
  std::optional<semaphore::permit> permit = may_serve_->try_acquire();
  if (!permit) return false;
  counts_.served.fetch_add(1, relaxed);
  static_cast<void>(serve(*what, message.reply, std::move(*permit)));
  return true;
}

// Returns why it did not run; nothing if its actor answers.
std::string node_state::serve(const request_frame& what, const std::string& reply,
                              semaphore::permit permit) {
  using enum answer_kind;
  const auto refusal = [](answer_kind kind, std::string_view text) {
    return write_answer({kind, {}, text});
  };
  const class_table* const kind = find_kind(what.kind);
  if (kind == nullptr) return refusal(unknown_class, {});
  const auto method = std::ranges::find(kind->methods, what.method, &method_entry::name);
  if (method == kind->methods.end()) return refusal(unknown_method, {});
  if (method->signature != what.signature) return refusal(other_signature, method->shape);
  const address to{
      kind,
      std::string(what.key),
      what.to == request_frame::target::member ? own_shard : shard_of(kind->name, what.key),
      {}};
  auto message = std::make_unique<served>(shared_from_this(), reply, std::move(permit));
  // As far as the clock goes, whatever the other node says.
  constexpr std::int64_t remaining_us_max = 1'000'000'000'000;
  if (what.remaining_us > 0)
    message->deadline_ns = now_ns() + 1'000 * std::min(what.remaining_us, remaining_us_max);
  message->trace = trace_context::parse(what.trace);
  std::string why;
  try {
    if (method->serve(shared_from_this(), to, as_bytes(what.arguments), message)) return {};
  } catch (const troupe::error& e) {
    why = e.what();
  }
  if (message == nullptr) return {};
  message->forget();
  return why.empty() ? refusal(not_here, {}) : refusal(malformed, why);
}

}  // namespace troupe::cluster::parts
