// Messages to actors that are on other nodes.
#include <algorithm>
#include <chrono>
#include <utility>

#include "cluster/node/node_state.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// An answer that says more than what the handler gave.
std::exception_ptr failure_of(const answer_frame& is, const outgoing& what) {
  const std::string text(is.bytes), class_name = what.target.kind->name;
  const auto made = [](failure kind, const std::string& words) {
    return std::make_exception_ptr(error(kind, "troupe: cluster: " + words));
  };
  switch (is.kind) {
    case answer_kind::unknown_class:
      return made(failure::unknown_method, "the other node has no class " + class_name);
    case answer_kind::unknown_method:
      return made(failure::unknown_method, "the other node's class " + class_name +
                                               " has no method " + what.method->name +
                                               what.method->shape);
    case answer_kind::other_signature:
      return made(failure::unknown_method,
                  "here the method " + class_name + "::" + what.method->name + " is " +
                      what.method->shape + ", and on the other node " + text);
    case answer_kind::malformed:
      return made(failure::malformed, "the other node could not read the message: " + text);
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

void send_away(const state_ref& on, address to, const method_entry& method, bytes arguments,
               std::unique_ptr<answer_to> answer) {
  auto what = std::make_unique<outgoing>();
  what->target = std::move(to);
  what->method = &method;
  what->arguments = std::move(arguments);
  what->answer = std::move(answer);
  on->send_away(std::move(what));
}

void tell_away(const state_ref& on, const address& target, const method_entry& method,
               bytes arguments) {
  if (target.member.empty()) return on->tell_away(target, method, arguments);
  send_away(on, target, method, std::move(arguments), nullptr);
}

void node_state::send_away(std::unique_ptr<outgoing> what) {
  const auto refuse = [&](failure kind, const char* words) {
    const auto why = std::make_exception_ptr(error(kind, words));
    if (what->answer == nullptr) std::rethrow_exception(why);
    std::exchange(what->answer, nullptr)->fail(why);
  };
  if (is_stopped_) return refuse(failure::stopped, "troupe: cluster: the node has been stopped");
  if (counts_.waiting.fetch_add(1, relaxed) >= chosen_.waiting_max) {
    counts_.waiting.fetch_sub(1, relaxed);
    return refuse(failure::full,
                  "troupe: cluster: options::waiting_max messages wait for other nodes; try again "
                  "later");
  }
  const nanoseconds left = this_call::remaining();
  what->is_callers_deadline = left <= chosen_.ask_timeout;
  what->deadline_ns = ns_after(std::min<nanoseconds>(left, chosen_.ask_timeout));
  if (const auto trace = this_call::trace()) what->trace = trace->traceparent();
  shard_state& state = shards_[what->target.shard];
  const outside_calls none;
  // With the lock, so that the route gets messages in the order in which they stand in the line.
  std::lock_guard held(state.mutex);
  if (!state.out) state.out = on_.spawn<route>(weak_from_this());
  state.out.tell<&route::send>(std::move(what));
  ++state.queued;
  state.tells.reset();
}

waiting_line::place::place(waiting_line& line, std::uint64_t number)
    : line_(line), number_(number) {
  line_.all_.try_emplace(number_);
}
waiting_line::place::~place() {
  line_.all_.erase(number_);
  if (line_.all_.empty()) return;
  if (const auto& first = line_.all_.begin()->second) first->set();
}
task<> waiting_line::place::comes_first() const {
  while (line_.all_.begin()->first != number_) {
    std::optional<event>& comes = line_.all_.at(number_);
    comes.emplace();
    const event turn = *comes;
    co_await turn.wait();
  }
}

task<> route::send(std::unique_ptr<outgoing> what) {
  const state_ref node = node_.lock();
  if (node == nullptr) co_return;
  what->number = ++count_;
  auto delivers = node->deliver(std::move(what), line_);
  co_await std::move(delivers);
}

task<> node_state::deliver(std::unique_ptr<outgoing> what, waiting_line& in) {
  std::exception_ptr failed;
  try {
    const nanoseconds left(what->deadline_ns - now_ns());
    auto tries = attempt(*what, in);
    auto limited = with_deadline(std::max(left, nanoseconds(0)), std::move(tries));
    co_await std::move(limited);
  } catch (const timed_out&) {
    failed = what->is_callers_deadline || what->may_have_run
                 ? std::current_exception()
                 : std::make_exception_ptr(error(
                       failure::unreachable,
                       "troupe: cluster: within options::ask_timeout no node was found that owns "
                       "the actor"));
  } catch (...) {
    failed = std::current_exception();
  }
  counts_.waiting.fetch_sub(1, relaxed);
  {
    std::lock_guard held(shards_[what->target.shard].mutex);
    --shards_[what->target.shard].queued;
  }
  if (failed == nullptr) co_return;
  counts_.failed.fetch_add(1, relaxed);
  if (what->answer != nullptr) std::exchange(what->answer, nullptr)->fail(failed);
}

// Until it has run, or nobody knows whether it has.
task<> node_state::attempt(outgoing& what, waiting_line& in) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    auto finds = next_owner(what, in, pause);
    const std::string owner_id = co_await std::move(finds);
    if (owner_id.empty()) co_return;
    auto tries = try_once(what, owner_id);
    if (co_await std::move(tries)) co_return;
    counts_.sent_again.fetch_add(1, relaxed);
    if (!what.target.member.empty())
      throw error(failure::unreachable, "troupe: cluster: the node " + owner_id + " has left");
    placement_->hurry();
  }
}

// Waits until its owner is known and all messages before it were sent. Returns the owner; "": it
// was handed over to an actor here.
task<std::string> node_state::next_owner(outgoing& what, waiting_line& in, milliseconds pause) {
  const waiting_line::place at(in, what.number);
  for (;; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    if (pause.count() > 0) co_await sleep_for(pause);
    auto waits = at.comes_first();
    co_await std::move(waits);
    if (is_stopped_) throw error(failure::stopped, "troupe: cluster: the node has been stopped");
    if (hand_over_here(what)) co_return std::string();
    if (what.target.member == self_.id)
      throw error(failure::stopped, "troupe: cluster: the node is being stopped");
    if (!what.target.member.empty()) co_return what.target.member;
    if (!has_joined_) continue;
    if (const auto owner = placement_->owner(what.target.shard);
        owner != nullptr && owner->id != self_.id)
      co_return owner->id;
  }
}

// The actor's shard may have come to this node meanwhile.
bool node_state::hand_over_here(outgoing& what) {
  const bool is_here = what.target.member.empty()
                           ? has_joined_ && placement_->is_mine(what.target.shard)
                           : what.target.member == self_.id;
  if (!is_here) return false;
  auto message = std::make_unique<served>(shared_from_this(), std::move(what.answer));
  message->deadline_ns = what.deadline_ns;
  message->trace = trace_context::parse(what.trace);
  try {
    if (what.method->serve(shared_from_this(), what.target, what.arguments, message)) return true;
  } catch (...) {
    if (message != nullptr) what.answer = message->forget();
    throw;
  }
  what.answer = message->forget();
  return false;
}

// Returns false if it is known that it did not run, and another node may have the actor.
task<bool> node_state::try_once(outgoing& what, std::string to) {
  counts_.sent.fetch_add(1, relaxed);
  bool is_lost = false;
  std::string answer;
  const std::stop_token end = end_of(to);
  try {
    if (what.answer == nullptr) {
      auto sends = way_->send(subject_of(to), frame_of(what));
      co_await std::move(sends);
      co_return true;
    }
    what.may_have_run = true;
    auto asks = way_->request(subject_of(to), frame_of(what));
    auto limited = with_stop(end, std::move(asks));
    answer = co_await std::move(limited);
  } catch (const error& e) {
    if (e.kind() != failure::unreachable) throw;
    what.may_have_run = false;
    co_return false;
  } catch (const cancelled&) {
    if (!end.stop_requested()) throw;
    is_lost = true;
  }
  if (is_lost)
    throw error(failure::lost,
                "troupe: cluster: the node that owned the actor has ended, or was "
                "cut off, before it answered");
  co_return settle(what, answer);
}

bool node_state::settle(outgoing& what, std::string_view answer) {
  const std::optional<answer_frame> is = read_answer(answer);
  if (!is)
    throw error(failure::malformed,
                "troupe: cluster: the answer does not have troupe's format; keep other programs "
                "off the cluster's subjects");
  if (is->kind == answer_kind::not_here || is->kind == answer_kind::full) {
    what.may_have_run = false;
    return false;
  }
  const std::unique_ptr<answer_to> asker = std::move(what.answer);
  if (is->kind == answer_kind::value) {
    const state_ref self = shared_from_this();
    const reading_on here(self);
    asker->give(as_bytes(is->bytes));
    return true;
  }
  std::exception_ptr why;
  if (is->kind == answer_kind::exception) {
    if (const exception_entry* const known = find_exception(is->type))
      why = known->make(std::string(is->bytes));
  }
  asker->fail(why != nullptr ? why : failure_of(*is, what));
  return true;
}

std::string node_state::subject_of(std::string_view member) const {
  return "troupe." + chosen_.cluster + ".node." + std::string(member);
}

std::string node_state::frame_of(const outgoing& what) const {
  request_frame frame;
  frame.signature = what.method->signature;
  // At least 1 us: none would be no limit.
  frame.remaining_us = std::max<std::int64_t>((what.deadline_ns - now_ns()) / 1'000, 1);
  frame.kind = what.target.kind->name;
  frame.key = what.target.key;
  frame.method = what.method->name;
  frame.trace = what.trace;
  if (!what.target.member.empty()) frame.to = request_frame::target::member;
  frame.arguments = as_text(what.arguments);
  return write_request(frame);
}

std::stop_token node_state::end_of(const std::string& member) {
  std::lock_guard held(mutex_);
  return ends_[member].get_token();
}

}  // namespace troupe::cluster::parts
