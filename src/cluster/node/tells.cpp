// Tells to actors that are on other nodes: at once where that is possible, and otherwise in a line.
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

// Before others have a turn.
constexpr unsigned tells_in_turn = 256;

}  // namespace

// The usual case: its owner is known, nothing to the shard waits, and there is room.
void node_state::tell_away(const address& target, const method_entry& method,
                           const bytes& arguments) {
  request_frame frame;
  frame.signature = method.signature;
  frame.kind = target.kind->name;
  frame.key = target.key;
  frame.method = method.name;
  std::string trace;
  if (const auto context = this_call::trace()) frame.trace = trace = context->traceparent();
  frame.arguments = as_text(arguments);
  std::string bytes_of = write_request(frame);
  shard_state& state = shards_[target.shard];
  std::lock_guard held(state.mutex);
  if (state.queued == 0 && tell_owner(target.shard, state.to, bytes_of)) return;
  queue_tell(state, target.shard, std::move(bytes_of));
}

// Returns false if its owner is not known, or is this node, or there is no room.
bool node_state::tell_owner(std::uint32_t shard, tell_subject& subject, std::string_view frame) {
  if (!has_joined_ || is_stopped_) return false;
  auto owner = placement_->owner(shard);
  if (owner == nullptr) return false;
  if (owner != subject.owner) {
    if (owner->id == self_.id) return false;
    subject.subject = subject_of(owner->id);
    subject.owner = std::move(owner);
  }
  if (!way_->try_send(subject.subject, frame)) return false;
  counts_.sent.fetch_add(1, relaxed);
  return true;
}

// Under the lock of the shard.
void node_state::queue_tell(shard_state& state, std::uint32_t shard, std::string frame) {
  if (is_stopped_) throw error(failure::stopped, "troupe: cluster: the node has been stopped");
  if (counts_.waiting.fetch_add(1, relaxed) >= chosen_.waiting_max) {
    counts_.waiting.fetch_sub(1, relaxed);
    throw error(failure::full,
                "troupe: cluster: options::waiting_max messages wait for other nodes; try again "
                "later");
  }
  const nanoseconds left = std::min<nanoseconds>(this_call::remaining(), chosen_.ask_timeout);
  tell_line::tell one{std::move(frame), ns_after(left)};
  if (state.tells != nullptr) {
    state.tells->all.push_back(std::move(one));
    return;
  }
  auto line = std::make_shared<tell_line>(shard);
  line->all.push_back(std::move(one));
  const outside_calls none;
  if (!state.out) state.out = on_.spawn<route>(weak_from_this());
  state.out.tell<&route::send_tells>(line);
  ++state.queued;
  state.tells = std::move(line);
}

task<> route::send_tells(std::shared_ptr<tell_line> what) {
  const state_ref node = node_.lock();
  if (node == nullptr) co_return;
  auto delivers = node->deliver_tells(std::move(what), line_, ++count_);
  co_await std::move(delivers);
}

// It keeps its place in the line of the route until nothing is left.
task<> node_state::deliver_tells(std::shared_ptr<tell_line> what, waiting_line& in,
                                 std::uint64_t number) {
  const waiting_line::place at(in, number);
  auto waits = at.comes_first();
  co_await std::move(waits);
  std::deque<tell_line::tell> batch;
  tell_subject to;
  for (unsigned in_turn = 0; take_tells(*what, batch);) {
    for (; !batch.empty(); batch.pop_front()) {
      bool is_sent = tell_owner(what->shard, to, batch.front().frame);
      if (!is_sent) {
        auto tries = try_tell(batch.front(), what->shard);
        is_sent = co_await std::move(tries);
        in_turn = 0;
      }
      counts_.waiting.fetch_sub(1, relaxed);
      if (!is_sent) counts_.failed.fetch_add(1, relaxed);
      if (++in_turn % tells_in_turn == 0) co_await yield();
    }
  }
}

// Returns whether it was sent before its deadline.
task<bool> node_state::try_tell(const tell_line::tell& what, std::uint32_t shard) {
  const nanoseconds left(what.deadline_ns - now_ns());
  if (is_stopped_ || left.count() <= 0) co_return false;
  try {
    auto tries = attempt_tell(what, shard);
    auto limited = with_deadline(left, std::move(tries));
    co_await std::move(limited);
  } catch (const troupe::error&) {
    co_return false;
  }
  co_return true;
}

// Returns false if there are none: then the line has ended.
bool node_state::take_tells(tell_line& line, std::deque<tell_line::tell>& into) {
  shard_state& from = shards_[line.shard];
  std::lock_guard held(from.mutex);
  into.swap(line.all);
  if (!into.empty()) return true;
  if (from.tells.get() == &line) from.tells.reset();
  --from.queued;
  return false;
}

// Until it was sent, or handed over to an actor here, or nobody knows.
task<> node_state::attempt_tell(const tell_line::tell& what, std::uint32_t shard) {
  for (milliseconds pause{0};; pause = std::clamp(2 * pause, pause_first, pause_last)) {
    if (pause.count() > 0) co_await sleep_for(pause);
    if (is_stopped_) throw error(failure::stopped, "troupe: cluster: the node has been stopped");
    if (!has_joined_) continue;
    if (placement_->is_mine(shard) && tell_here(what.frame)) co_return;
    const auto owner = placement_->owner(shard);
    if (owner == nullptr || owner->id == self_.id) continue;
    counts_.sent.fetch_add(1, relaxed);
    try {
      auto sends = way_->send(subject_of(owner->id), what.frame);
      co_await std::move(sends);
      co_return;
    } catch (const error& e) {
      if (e.kind() != failure::unreachable) throw;
    }
    counts_.sent_again.fetch_add(1, relaxed);
    placement_->hurry();
  }
}

// The actor's shard may have come to this node meanwhile. Returns false if it has gone again.
bool node_state::tell_here(std::string_view frame) {
  const std::optional<request_frame> what = read_request(frame);
  if (!what) return false;
  const std::string refusal = serve(*what, {}, {});
  if (refusal.empty()) return true;
  const std::optional<answer_frame> is = read_answer(refusal);
  if (!is || is->kind == answer_kind::not_here) return false;
  throw error(failure::malformed, "troupe: cluster: this node could not read its own message");
}

}  // namespace troupe::cluster::parts
