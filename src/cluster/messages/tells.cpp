// Tells to actors that are on other nodes: at once where that is possible, and otherwise in a line.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "cluster/core/frames.hpp"
#include "cluster/messages/outbound.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Messages to the owner, before others have a turn.
constexpr unsigned parts_in_turn = 64;
// The server and both clients work once for a batch.
constexpr std::size_t batch_bytes_max = 16 * 1024;

}  // namespace

void tell_line::add(std::string_view frame, std::int64_t deadline_ns, nanoseconds left) {
  const std::int64_t tolerance = left.count() / 16;
  const bool fits = !batches.empty() && batches.back().tells.bytes_with(frame) <= batch_bytes_max &&
                    std::abs(batches.back().deadline_ns - deadline_ns) <= tolerance;
  if (fits) return batches.back().tells.add(frame);
  batch next(deadline_ns);
  next.tells.add(frame);
  batches.push_back(std::move(next));
}

// The usual case: its owner is known, nothing to the shard waits, and there is room.
void outbound::tell(std::uint32_t shard, std::string_view frame) {
  lane& shard_lane = lanes_[shard];
  const auto held = actors_.lock(shard);
  if (actors_.queued(shard) == 0) {
    const std::string* const subject = subject_of_owner(shard, shard_lane.subject);
    if (subject != nullptr && core_.way().try_send(*subject, frame)) {
      core_.traffic().sent.add(1);
      return;
    }
  }
  queue_tell(shard_lane, shard, frame);
}

// Returns null if its owner is not known, or is this node.
const std::string* outbound::subject_of_owner(std::uint32_t shard, tell_subject& known) {
  if (!core_.stage().has_joined() || core_.stage().has_left()) return nullptr;
  auto owner = core_.owners().owner(shard);
  if (owner == nullptr) return nullptr;
  if (owner != known.owner) {
    if (owner->id == core_.self().id) return nullptr;
    known.subject = core_.subject_of(owner->id);
    known.owner = std::move(owner);
  }
  return &known.subject;
}

// Under the lock of the shard.
void outbound::queue_tell(lane& shard_lane, std::uint32_t shard, std::string_view frame) {
  core_.check_not_left();
  if (frame.size() > std::numeric_limits<std::uint32_t>::max())
    throw error(failure::too_large,
                "troupe: cluster: the message has 4 GiB or more; send it in parts");
  core_.add_waiting();
  try {
    add_tell(shard_lane, shard, frame);
  } catch (...) {
    core_.traffic().waiting.fetch_sub(1, relaxed);
    throw;
  }
}

// Under the lock of the shard.
void outbound::add_tell(lane& shard_lane, std::uint32_t shard, std::string_view frame) {
  const nanoseconds left =
      std::min<nanoseconds>(this_call::remaining(), core_.chosen().ask_timeout);
  const std::int64_t deadline_ns = core_.ns_after(left);
  if (shard_lane.tells != nullptr) return shard_lane.tells->add(frame, deadline_ns, left);
  auto line = std::make_shared<tell_line>(shard);
  line->add(frame, deadline_ns, left);
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
  std::deque<tell_line::batch> batches;
  tell_subject subject;
  for (unsigned in_turn = 0; take_tells(*tells, batches);) {
    while (!batches.empty()) {
      waiting_bundle& batch = batches.front().tells;
      const std::size_t before = batch.count();
      if (!send_part(tells->shard, subject, batch)) {
        auto tries = try_first(batches.front(), tells->shard);
        co_await std::move(tries);
        in_turn = 0;
      }
      core_.traffic().waiting.fetch_sub(before - batch.count(), relaxed);
      if (batch.empty()) batches.pop_front();
      if (++in_turn % parts_in_turn == 0) co_await yield();
    }
  }
}

// Returns false if there are none: then the line has ended.
bool outbound::take_tells(tell_line& tells, std::deque<tell_line::batch>& into) {
  const auto held = actors_.lock(tells.shard);
  into.swap(tells.batches);
  if (!into.empty()) return true;
  lane& from = lanes_[tells.shard];
  if (from.tells.get() == &tells) from.tells.reset();
  --actors_.queued(tells.shard);
  return false;
}

outbound::tell_part outbound::next_part(const std::string& subject,
                                        const waiting_bundle& tells) const {
  const transport& way = core_.way();
  const std::string_view whole = tells.whole();
  if (tells.count() > 1 && whole.size() <= way.bytes_max() && way.takes_bundles(subject))
    return {whole, tells.count()};
  return {tells.first(), 1};
}

// At once. Returns false if its owner is not known, or is this node, or there is no room.
bool outbound::send_part(std::uint32_t shard, tell_subject& subject, waiting_bundle& tells) {
  const std::string* const owner = subject_of_owner(shard, subject);
  if (owner == nullptr) return false;
  const tell_part part = next_part(*owner, tells);
  if (!core_.way().try_send(*owner, part.bytes)) return false;
  core_.traffic().sent.add(part.count);
  tells.drop(part.count);
  return true;
}

// Drops the first tell of the batch when it was sent, or an actor here has it, or its outcome is
// unknown, or its time is over.
task<> outbound::try_first(tell_line::batch& batch, std::uint32_t shard) {
  const nanoseconds left(batch.deadline_ns - core_.now_ns());
  bool is_told = false;
  if (!core_.stage().has_left() && left.count() > 0) {
    try {
      auto tries = attempt_tell(std::string(batch.tells.first()), shard);
      auto limited = with_deadline(left, std::move(tries));
      co_await std::move(limited);
      is_told = true;
    } catch (const troupe::error&) {
    } catch (const std::bad_alloc&) {
    }
  }
  if (!is_told) core_.traffic().failed.fetch_add(1, relaxed);
  batch.tells.drop(1);
}

// One tell, and not a bundle: the shard may get another owner while it waits for room.
task<> outbound::attempt_tell(std::string frame, std::uint32_t shard) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    if (pause.count() > 0) co_await sleep_for(pause);
    core_.check_not_left();
    if (!core_.stage().has_joined()) continue;
    if (core_.owners().is_mine(shard) && tell_here(frame)) co_return;
    const auto owner = core_.owners().owner(shard);
    if (owner == nullptr || owner->id == core_.self().id) continue;
    core_.traffic().sent.add(1);
    try {
      auto sends = core_.way().send(core_.subject_of(owner->id), frame);
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
  const std::string refusal = inbound_.serve(core_.node(), *request, {}, {});
  if (refusal.empty()) return true;
  const std::optional<answer_frame> is = read_answer(refusal);
  if (!is || is->kind == answer_kind::not_here) return false;
  throw error(failure::malformed, "troupe: cluster: this node could not read its own message");
}

}  // namespace troupe::cluster::parts
