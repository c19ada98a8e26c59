// Tells to actors that are on other nodes: at once where that is possible, and otherwise in a line.
#include <algorithm>
#include <chrono>
#include <utility>

#include "cluster/core/frames.hpp"
#include "cluster/messages/outbound.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Before others have a turn.
constexpr unsigned tells_in_turn = 256;

}  // namespace

// The usual case: its owner is known, nothing to the shard waits, and there is room.
void outbound::tell(const address& target, const method_entry& method, const bytes& arguments) {
  request_frame request;
  request.signature = method.signature;
  request.kind = target.kind->name;
  request.key = target.key;
  request.method = method.name;
  const std::string trace = write_trace();
  request.trace = trace;
  request.arguments = as_text(arguments);
  std::string frame = write_request(request);
  lane& shard_lane = lanes_[target.shard];
  const auto held = actors_.lock(target.shard);
  if (actors_.queued(target.shard) == 0 && tell_owner(target.shard, shard_lane.subject, frame))
    return;
  queue_tell(shard_lane, target.shard, std::move(frame));
}

// Returns false if its owner is not known, or is this node, or there is no room.
bool outbound::tell_owner(std::uint32_t shard, tell_subject& subject, std::string_view frame) {
  if (!core_.stage().has_joined() || core_.stage().has_left()) return false;
  auto owner = core_.owners().owner(shard);
  if (owner == nullptr) return false;
  if (owner != subject.owner) {
    if (owner->id == core_.self().id) return false;
    subject.subject = core_.subject_of(owner->id);
    subject.owner = std::move(owner);
  }
  if (!core_.way().try_send(subject.subject, frame)) return false;
  core_.traffic().sent.add(1);
  return true;
}

// Under the lock of the shard.
void outbound::queue_tell(lane& shard_lane, std::uint32_t shard, std::string frame) {
  core_.check_not_left();
  core_.add_waiting();
  const nanoseconds left =
      std::min<nanoseconds>(this_call::remaining(), core_.chosen().ask_timeout);
  tell_line::tell tell{std::move(frame), core_.ns_after(left)};
  if (shard_lane.tells != nullptr) {
    shard_lane.tells->tells.push_back(std::move(tell));
    return;
  }
  auto line = std::make_shared<tell_line>(shard);
  line->tells.push_back(std::move(tell));
  const outside_calls none;
  route_of(shard_lane).tell<&route::send_tells>(line);
  ++actors_.queued(shard);
  shard_lane.tells = std::move(line);
}

task<> route::send_tells(std::shared_ptr<tell_line> tells) {
  const state_ref node = node_.lock();
  if (node == nullptr) co_return;
  auto delivers = out_.deliver_tells(std::move(tells), line_, ++count_);
  co_await std::move(delivers);
}

// It keeps its place in the line of the route until nothing is left.
task<> outbound::deliver_tells(std::shared_ptr<tell_line> tells, waiting_line& line,
                               std::uint64_t number) {
  const waiting_line::place place(line, number);
  auto waits = place.comes_first();
  co_await std::move(waits);
  std::deque<tell_line::tell> batch;
  tell_subject subject;
  for (unsigned in_turn = 0; take_tells(*tells, batch);) {
    for (; !batch.empty(); batch.pop_front()) {
      bool is_sent = tell_owner(tells->shard, subject, batch.front().frame);
      if (!is_sent) {
        auto tries = try_tell(batch.front(), tells->shard);
        is_sent = co_await std::move(tries);
        in_turn = 0;
      }
      core_.traffic().waiting.fetch_sub(1, relaxed);
      if (!is_sent) core_.traffic().failed.fetch_add(1, relaxed);
      if (++in_turn % tells_in_turn == 0) co_await yield();
    }
  }
}

// Returns whether it was sent before its deadline.
task<bool> outbound::try_tell(const tell_line::tell& tell, std::uint32_t shard) {
  const nanoseconds left(tell.deadline_ns - core_.now_ns());
  if (core_.stage().has_left() || left.count() <= 0) co_return false;
  try {
    auto tries = attempt_tell(tell, shard);
    auto limited = with_deadline(left, std::move(tries));
    co_await std::move(limited);
  } catch (const troupe::error&) {
    co_return false;
  }
  co_return true;
}

// Returns false if there are none: then the line has ended.
bool outbound::take_tells(tell_line& tells, std::deque<tell_line::tell>& into) {
  const auto held = actors_.lock(tells.shard);
  into.swap(tells.tells);
  if (!into.empty()) return true;
  lane& from = lanes_[tells.shard];
  if (from.tells.get() == &tells) from.tells.reset();
  --actors_.queued(tells.shard);
  return false;
}

// Until it was sent, or an actor here has it, or its outcome is unknown.
task<> outbound::attempt_tell(const tell_line::tell& tell, std::uint32_t shard) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    if (pause.count() > 0) co_await sleep_for(pause);
    core_.check_not_left();
    if (!core_.stage().has_joined()) continue;
    if (core_.owners().is_mine(shard) && tell_here(tell.frame)) co_return;
    const auto owner = core_.owners().owner(shard);
    if (owner == nullptr || owner->id == core_.self().id) continue;
    core_.traffic().sent.add(1);
    try {
      auto sends = core_.way().send(core_.subject_of(owner->id), tell.frame);
      co_await std::move(sends);
      co_return;
    } catch (const error& e) {
      if (e.kind() != failure::unreachable) throw;
    }
    core_.traffic().sent_again.fetch_add(1, relaxed);
    core_.owners().hurry();
  }
}

// The actor's shard may have moved to this node meanwhile. Returns false if it has moved on.
bool outbound::tell_here(std::string_view frame) {
  const std::optional<request_frame> request = read_request(frame);
  if (!request) return false;
  const std::string refusal = inbound_.serve(*request, {}, {});
  if (refusal.empty()) return true;
  const std::optional<answer_frame> is = read_answer(refusal);
  if (!is || is->kind == answer_kind::not_here) return false;
  throw error(failure::malformed, "troupe: cluster: this node could not read its own message");
}

}  // namespace troupe::cluster::parts
