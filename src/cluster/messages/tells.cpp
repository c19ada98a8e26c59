// Tells to actors that are on other nodes: at once where that is possible, and otherwise in a line.
#include <algorithm>
#include <chrono>
#include <cstdlib>
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
  const std::int64_t about = left.count() / 16;
  const bool fits = !batches.empty() && batches.back().tells.bytes_with(frame) <= batch_bytes_max &&
                    std::abs(batches.back().deadline_ns - deadline_ns) <= about;
  if (!fits) batches.emplace_back(deadline_ns);
  batches.back().tells.add(frame);
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
  core_.add_waiting();
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
        auto tries = try_part(batches.front(), tells->shard);
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

// Until a part of it was sent, or actors here have some, or its outcome is unknown, or its time is
// over.
task<> outbound::try_part(tell_line::batch& batch, std::uint32_t shard) {
  const nanoseconds left(batch.deadline_ns - core_.now_ns());
  std::size_t tried = batch.tells.count();
  if (!core_.stage().has_left() && left.count() > 0) {
    try {
      auto tries = attempt_part(batch.tells, shard, tried);
      auto limited = with_deadline(left, std::move(tries));
      co_await std::move(limited);
      co_return;
    } catch (const troupe::error&) {
    }
  }
  core_.traffic().failed.fetch_add(tried, relaxed);
  batch.tells.drop(tried);
}

// tried: how many are lost if it fails now.
task<> outbound::attempt_part(waiting_bundle& tells, std::uint32_t shard, std::size_t& tried) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    tried = tells.count();
    if (pause.count() > 0) co_await sleep_for(pause);
    core_.check_not_left();
    if (!core_.stage().has_joined()) continue;
    if (core_.owners().is_mine(shard)) {
      tried = 1;
      if (tell_here(tells.first())) {
        tells.drop(1);
        co_return;
      }
    }
    const auto owner = core_.owners().owner(shard);
    if (owner == nullptr || owner->id == core_.self().id) continue;
    const std::string subject = core_.subject_of(owner->id);
    const tell_part part = next_part(subject, tells);
    tried = part.count;
    core_.traffic().sent.add(part.count);
    try {
      auto sends = core_.way().send(subject, std::string(part.bytes));
      co_await std::move(sends);
      tells.drop(part.count);
      co_return;
    } catch (const error& e) {
      if (e.kind() != failure::unreachable) throw;
    }
    core_.traffic().sent_again.fetch_add(part.count, relaxed);
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
