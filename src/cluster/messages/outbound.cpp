#include "cluster/messages/outbound.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/invariant.hpp"
#include "cluster/core/frames.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The failure in an answer that is no result of the handler.
std::exception_ptr failure_of(const answer_frame& is, const outgoing& message) {
  const std::string text(is.bytes), class_name = message.target.kind->name;
  const auto failed = [](failure kind, const std::string& words) {
    return std::make_exception_ptr(error(kind, "troupe: cluster: " + words));
  };
  switch (is.kind) {
    case answer_kind::unknown_class:
      return failed(failure::unknown_method, "the other node has no class " + class_name);
    case answer_kind::unknown_method:
      return failed(failure::unknown_method, "the other node's class " + class_name +
                                                 " has no method " + message.method->name +
                                                 message.method->shape);
    case answer_kind::other_signature:
      return failed(failure::unknown_method,
                    "here the method " + class_name + "::" + message.method->name + " is " +
                        message.method->shape + ", and on the other node " + text);
    case answer_kind::malformed:
      return failed(failure::malformed, "the other node could not read the message: " + text);
    case answer_kind::lost:
      return std::make_exception_ptr(error(failure::lost, text));
    case answer_kind::timed_out:
      return std::make_exception_ptr(timed_out(text));
    case answer_kind::cancelled:
      return std::make_exception_ptr(cancelled(text));
    default:
      return std::make_exception_ptr(remote_exception(std::string(is.type), text));
  }
}

}  // namespace

troupe::ref<route>& outbound::route_of(lane& shard_lane) {
  if (!shard_lane.out) shard_lane.out = core_.on().spawn<route>(core_.weak_node(), *this);
  return shard_lane.out;
}

void outbound::send(std::unique_ptr<outgoing> message) {
  try {
    core_.check_not_left();
    core_.add_waiting();
  } catch (const error&) {
    if (message->answer == nullptr) throw;
    std::exchange(message->answer, nullptr)->fail(std::current_exception());
    return;
  }
  const nanoseconds left = this_call::remaining(), ask_timeout = core_.chosen().ask_timeout;
  message->is_callers_deadline = left <= ask_timeout;
  message->deadline_ns = core_.ns_after(std::min(left, ask_timeout));
  message->trace = write_trace();
  const std::uint32_t shard = message->target.shard;
  const outside_calls none;
  // With the lock, so that the route gets messages in the order in which they are in the queue.
  const auto held = actors_.lock(shard);
  route_of(lanes_[shard]).tell<&route::send>(std::move(message));
  ++actors_.queued(shard);
  lanes_[shard].tells.reset();
}

task<> route::send(std::unique_ptr<outgoing> message) {
  const state_ref node = node_.lock();
  if (node == nullptr) co_return;
  message->number = ++count_;
  auto delivers = out_.deliver(std::move(message), line_);
  co_await std::move(delivers);
}

task<> outbound::deliver(std::unique_ptr<outgoing> message, waiting_line& line) {
  std::exception_ptr failed;
  try {
    const nanoseconds left(message->deadline_ns - core_.now_ns());
    auto tries = attempt(*message, line);
    auto limited = with_deadline(std::max(left, nanoseconds(0)), std::move(tries));
    co_await std::move(limited);
  } catch (const timed_out&) {
    failed = message->is_callers_deadline || message->may_have_run
                 ? std::current_exception()
                 : std::make_exception_ptr(error(
                       failure::unreachable,
                       "troupe: cluster: within options::ask_timeout no node was found that owns "
                       "the actor"));
  } catch (...) {
    failed = std::current_exception();
  }
  core_.traffic().waiting.fetch_sub(1, relaxed);
  {
    const auto held = actors_.lock(message->target.shard);
    --actors_.queued(message->target.shard);
  }
  if (failed == nullptr) co_return;
  core_.traffic().failed.fetch_add(1, relaxed);
  if (message->answer != nullptr) std::exchange(message->answer, nullptr)->fail(failed);
}

// Until it has run, or its outcome is unknown.
task<> outbound::attempt(outgoing& message, waiting_line& line) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    auto finds = next_owner(message, line, pause);
    const std::string owner = co_await std::move(finds);
    if (owner.empty()) co_return;
    auto tries = try_once(message, owner);
    if (co_await std::move(tries)) co_return;
    TROUPE_INVARIANT(!message.may_have_run, "N4");
    core_.traffic().sent_again.fetch_add(1, relaxed);
    if (!message.target.member.empty())
      throw error(failure::unreachable, "troupe: cluster: the node " + owner + " has left");
    core_.owners().hurry();
  }
}

// Waits until its owner is known and all messages before it were sent. Returns the owner; "": an
// actor here has it.
task<std::string> outbound::next_owner(outgoing& message, waiting_line& line, milliseconds pause) {
  const waiting_line::place place(line, message.number);
  const std::string& self = core_.self().id;
  for (;; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    if (pause.count() > 0) co_await sleep_for(pause);
    auto waits = place.comes_first();
    co_await std::move(waits);
    core_.check_not_left();
    if (give_here(message)) co_return std::string();
    if (message.target.member == self)
      throw error(failure::stopped, "troupe: cluster: the node is being stopped");
    if (!message.target.member.empty()) co_return message.target.member;
    if (!core_.stage().has_joined()) continue;
    if (const auto owner = core_.owners().owner(message.target.shard);
        owner != nullptr && owner->id != self)
      co_return owner->id;
  }
}

// The actor's shard may have moved to this node meanwhile.
bool outbound::give_here(outgoing& message) {
  const address& target = message.target;
  const bool is_here = target.member.empty()
                           ? core_.stage().has_joined() && core_.owners().is_mine(target.shard)
                           : target.member == core_.self().id;
  if (!is_here) return false;
  const state_ref node = core_.node();
  auto request = std::make_unique<served>(node, std::move(message.answer));
  request->deadline_ns = message.deadline_ns;
  request->trace = read_trace(message.trace);
  try {
    if (message.method->serve(node, target, message.arguments, request)) return true;
  } catch (...) {
    if (request != nullptr) message.answer = request->forget();
    throw;
  }
  message.answer = request->forget();
  return false;
}

// Returns false if it is known that it did not run, and another node may have the actor.
task<bool> outbound::try_once(outgoing& message, std::string owner) {
  core_.traffic().sent.add(1);
  bool is_lost = false;
  std::string answer;
  const std::stop_token end = members_.end_of(owner);
  try {
    if (message.answer == nullptr) {
      auto sends = core_.way().send(core_.subject_of(owner), frame_of(message));
      co_await std::move(sends);
      co_return true;
    }
    message.may_have_run = true;
    auto asks = core_.way().request(core_.subject_of(owner), frame_of(message));
    auto limited = with_stop(end, std::move(asks));
    answer = co_await std::move(limited);
  } catch (const error& e) {
    if (e.kind() != failure::unreachable) throw;
    message.may_have_run = false;
    co_return false;
  } catch (const cancelled&) {
    if (!end.stop_requested()) throw;
    is_lost = true;
  }
  if (is_lost)
    throw error(failure::lost,
                "troupe: cluster: the node that owned the actor has ended, or was "
                "cut off, before it answered");
  co_return settle(message, answer);
}

// Returns false if, by the answer, the message was not handled and another node may have the actor.
bool outbound::settle(outgoing& message, std::string_view answer) {
  const answer_frame is = checked_answer(answer);
  if (is.kind == answer_kind::not_here || is.kind == answer_kind::full) {
    message.may_have_run = false;
    return false;
  }
  const std::unique_ptr<answer_to> asker = std::move(message.answer);
  if (is.kind == answer_kind::value) {
    const state_ref node = core_.node();
    const reading_on reading(node);
    asker->give(as_bytes(is.bytes));
    return true;
  }
  std::exception_ptr why;
  if (is.kind == answer_kind::exception) {
    if (const exception_entry* const known = core_.find_exception(is.type))
      why = known->make(std::string(is.bytes));
  }
  asker->fail(why != nullptr ? why : failure_of(is, message));
  return true;
}

std::string outbound::frame_of(const outgoing& message) const {
  request_frame frame;
  frame.signature = message.method->signature;
  // At least 1 us: none would be no limit.
  frame.remaining_us = std::max<std::int64_t>((message.deadline_ns - core_.now_ns()) / 1'000, 1);
  frame.kind = message.target.kind->name;
  frame.key = message.target.key;
  frame.method = message.method->name;
  frame.trace = message.trace;
  if (!message.target.member.empty()) frame.to = request_frame::target::member;
  frame.arguments = as_text(message.arguments);
  return write_request(frame);
}

}  // namespace troupe::cluster::parts
