#include "cluster/actors/durable_actors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "durable/memory/shard_scope.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster::parts {
namespace {

using durable::stored_message;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The engine's calls to its node.
class node_scope final : public durable::parts::shard_scope {
 public:
  node_scope(node_core& core, durable_actors& actors) noexcept
      : node_(core.weak_node()), core_(core), actors_(actors) {}
  std::uint32_t shard_of(std::string_view kind, std::string_view key) const noexcept override {
    return parts::shard_of(kind, key);
  }
  void check_key(std::string_view key) const override {
    if (key.size() > durable_key_bytes_max)
      throw usage_error("troupe: cluster: a key of a durable actor has " +
                        std::to_string(key.size()) + " bytes, and at most " +
                        std::to_string(durable_key_bytes_max) +
                        " travel between nodes; choose shorter keys");
  }
  bool acts_for(const durable::held_shard& held) const noexcept override {
    const state_ref node = node_.lock();
    return node != nullptr && core_.owns(held.shard, held.fence);
  }
  task<bytes> forward(stored_message message) override {
    return durable_actors::forward(&actors_, node(), std::move(message));
  }
  task<bool> waits_for(durable::parts::cycle_question question) override {
    return durable_actors::ask_for_cycle(&actors_, node(), std::move(question));
  }

 private:
  state_ref node() const {
    state_ref node = node_.lock();
    if (node == nullptr)
      throw error(failure::stopped, "troupe: cluster: the node has been stopped");
    return node;
  }

  const std::weak_ptr<node_state> node_;
  node_core& core_;         // while node_ is there
  durable_actors& actors_;  // while node_ is there
};

// One more of those for which a stop waits.
class waiting_message {
 public:
  explicit waiting_message(std::atomic<std::size_t>& count) noexcept : count_(count) {
    count_.fetch_add(1, relaxed);
  }
  waiting_message(const waiting_message&) = delete;
  waiting_message& operator=(const waiting_message&) = delete;
  ~waiting_message() { count_.fetch_sub(1, relaxed); }

 private:
  std::atomic<std::size_t>& count_;
};

// Of a call that a database has refused: the caller gets the error as if the actor were here.
std::string refusal_of(const database::error& e) {
  if (e.effect() != database::effect::none) return write_answer({answer_kind::lost, {}, e.what()});
  std::string type(database_error_type);
  for (const int number : {static_cast<int>(e.kind()), static_cast<int>(e.broken_rule()), e.code()})
    type += " " + std::to_string(number);
  return write_answer({answer_kind::exception, type, e.what()});
}

// Throws the exception that another node has named so, unless it is a failure of the handler.
void throw_if_known(std::string_view type, const std::string& text) {
  if (type == id_mismatch_type) throw durable::id_mismatch(text);
  if (type == schema_error_type) throw durable::schema_error(text);
  if (type == store_taken_type) throw durable::store_taken(text);
  if (!type.starts_with(database_error_type)) return;
  type.remove_prefix(database_error_type.size());
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    if (!type.starts_with(' ')) return;
    const auto [rest, wrong] = std::from_chars(type.data() + 1, type.data() + type.size(), number);
    if (wrong != std::errc{}) return;
    type.remove_prefix(static_cast<std::size_t>(rest - type.data()));
  }
  const auto [kind, rule, code] = numbers;
  if (kind < 0 || kind > static_cast<int>(database::failure::bad_target) || rule < 0 ||
      rule > static_cast<int>(database::rule::check))
    return;
  throw database::error(static_cast<database::failure>(kind), code, text,
                        static_cast<database::rule>(rule));
}

}  // namespace

const durable::store& durable_actors::store() const {
  if (engine_ == nullptr)
    throw usage_error("troupe: cluster: the node was given no durable classes");
  if (!core_.stage().has_joined())
    throw usage_error("troupe: cluster: await ready() before get_durable()");
  return *store_;
}

void durable_actors::open(std::unique_ptr<durable::storage> storage) {
  std::shared_ptr<durable::parts::shard_scope> scope;
  if (!core_.is_alone()) scope = std::make_shared<node_scope>(core_, *this);
  engine_ =
      std::make_shared<durable::parts::engine>(core_.on(), std::move(storage), durable::options(),
                                               core_.with().durable_kinds, std::move(scope));
  store_ = durable::parts::store_access::make(engine_);
}

task<> durable_actors::open_store() {
  const auto leases = core_.make_leases();
  auto opens_leases = leases->open(core_.chosen().cluster);
  co_await std::move(opens_leases);
  auto opens = engine_->open();
  co_await std::move(opens);
}

void durable_actors::gained(const std::vector<held_shard>& shards) {
  if (is_shared()) engine_->gained(shards);
}
void durable_actors::lost(const std::vector<std::uint32_t>& shards) {
  if (is_shared()) engine_->lost(shards);
}
std::vector<held_shard> durable_actors::hand_over(const std::vector<held_shard>& shards,
                                                  bool closes) {
  return is_shared() ? engine_->hand_over(shards, closes) : shards;
}

task<bytes> durable_actors::forward(durable_actors* self, state_ref, stored_message message) {
  node_core& core = self->core_;
  const waiting_message counted(core.traffic().waiting);
  const std::uint32_t shard = shard_of(message.to.kind, message.to.key);
  const std::int64_t until =
      core.ns_after(std::min<nanoseconds>(this_call::remaining(), core.chosen().ask_timeout));
  milliseconds pause = pause_first;
  while (!core.stage().has_left()) {
    std::string owner_id;
    if (const auto owner = core.owners().owner(shard)) owner_id = owner->id;
    bool again = owner_id.empty();
    if (owner_id == core.self().id) {
      try {
        auto delivers = self->engine_->deliver(message);
        co_return co_await std::move(delivers);
      } catch (const durable::shard_moved& moved) {
        if (moved.is_stored()) throw;
        again = true;
      }
    } else if (!owner_id.empty()) {
      auto tries = self->forward_once(message, owner_id, again);
      bytes got = co_await std::move(tries);
      if (!again) co_return got;
      core.owners().hurry();
    }
    if (core.now_ns() >= until)
      throw error(failure::unreachable, "troupe: cluster: no node was found that owns the actor");
    co_await sleep_for(pause);
    pause = std::min(2 * pause, pause_last);
  }
  throw error(failure::stopped, "troupe: cluster: the node has been stopped");
}

// `again`: it did not run there.
task<std::string> durable_actors::request(const std::string& owner, const bytes& encoded,
                                          bool& again) {
  const nanoseconds at_most = core_.chosen().ask_timeout;
  request_frame frame;
  frame.to = request_frame::target::durable;
  frame.remaining_us = std::chrono::duration_cast<std::chrono::microseconds>(at_most).count();
  frame.arguments = as_text(encoded);
  const std::string trace = write_trace();
  frame.trace = trace;
  core_.traffic().sent.add(1);
  const std::stop_token end = members_.end_of(owner);
  bool is_lost = false;
  try {
    auto asks = core_.way().request(core_.subject_of(owner), write_request(frame));
    auto stoppable = with_stop(end, std::move(asks));
    auto limited = with_deadline(at_most, std::move(stoppable));
    co_return co_await std::move(limited);
  } catch (const error& e) {
    if (e.kind() != failure::unreachable) throw;
    again = true;
  } catch (const cancelled&) {
    if (!end.stop_requested()) throw;
    is_lost = true;
  }
  if (is_lost)
    throw error(failure::lost, "troupe: cluster: the node that owned the actor has ended");
  co_return std::string();
}

task<bytes> durable_actors::forward_once(const stored_message& message, const std::string& owner,
                                         bool& again) {
  const bytes encoded = durable::encode(message);
  auto asks = request(owner, encoded, again);
  const std::string got = co_await std::move(asks);
  if (again) co_return bytes();
  const answer_frame is = checked_answer(got);
  const std::string text(is.bytes);
  switch (is.kind) {
    case answer_kind::value: {
      bytes value(is.bytes.size());
      std::ranges::copy(as_bytes(is.bytes), value.begin());
      co_return value;
    }
    case answer_kind::exception:
      throw_if_known(is.type, text);
      throw durable::handler_failed(std::string(is.type), text);
    case answer_kind::unknown_class:
    case answer_kind::unknown_method:
    case answer_kind::other_signature:
      throw durable::unknown_method(text);
    case answer_kind::not_here:
    case answer_kind::full:
      again = true;
      co_return bytes();
    case answer_kind::malformed:
      throw error(failure::malformed, text);
    case answer_kind::deadlock:
      throw deadlock(text);
    default:
      throw error(failure::lost, text);
  }
}

std::string durable_actors::serve_message(const request_frame& request, const std::string& reply,
                                          semaphore::permit permit) {
  if (engine_ == nullptr)
    return write_answer({answer_kind::unknown_class, {}, "the node has no durable classes"});
  if (!core_.stage().has_joined()) return write_answer({answer_kind::not_here, {}, {}});
  try {
    auto message = durable::decode<stored_message>(as_bytes(request.arguments));
    const outside_calls none;
    static_cast<void>(core_.on().spawn(answer_message(
        this, core_.node(), reply, engine_->deliver(std::move(message)), std::move(permit))));
    return {};
  } catch (const durable::decode_error& e) {
    return write_answer({answer_kind::malformed, {}, e.what()});
  }
}

task<> durable_actors::answer_message(durable_actors* self, state_ref, std::string reply,
                                      future<bytes> from, semaphore::permit) {
  std::string frame;
  try {
    const bytes value = co_await std::move(from);
    frame = write_answer({answer_kind::value, {}, as_text(value)});
  } catch (const durable::handler_failed& e) {
    frame = write_answer({answer_kind::exception, e.type(), e.what()});
  } catch (const durable::id_mismatch& e) {
    frame = write_answer({answer_kind::exception, id_mismatch_type, e.what()});
  } catch (const durable::schema_error& e) {
    frame = write_answer({answer_kind::exception, schema_error_type, e.what()});
  } catch (const durable::store_taken& e) {
    frame = write_answer({answer_kind::exception, store_taken_type, e.what()});
  } catch (const database::error& e) {
    frame = refusal_of(e);
  } catch (const durable::unknown_method& e) {
    frame = write_answer({answer_kind::unknown_method, {}, e.what()});
  } catch (const durable::shard_moved& e) {
    frame = write_answer({e.is_stored() ? answer_kind::lost : answer_kind::not_here, {}, e.what()});
  } catch (const deadlock& e) {
    frame = write_answer({answer_kind::deadlock, {}, e.what()});
  } catch (const durable::store_full& e) {
    frame = write_answer({answer_kind::full, {}, e.what()});
  } catch (const std::exception& e) {
    frame = write_answer({answer_kind::lost, {}, e.what()});
  }
  if (!reply.empty()) self->core_.answer(std::move(reply), std::move(frame));
}

constexpr std::chrono::seconds cycle_answer_max{2};
constexpr std::string_view yes = "yes", no = "no";

// Where the actor is.
task<bool> durable_actors::ask_for_cycle(durable_actors* self, state_ref,
                                         durable::parts::cycle_question question) {
  node_core& core = self->core_;
  const auto owner = core.owners().owner(shard_of(question.to.kind, question.to.key));
  if (owner == nullptr) co_return false;
  if (owner->id == core.self().id) {
    auto looks = durable::parts::engine::waits_for(self->engine_, std::move(question));
    co_return co_await std::move(looks);
  }
  const bytes encoded = durable::encode(question);
  request_frame frame;
  frame.to = request_frame::target::cycle;
  frame.arguments = as_text(encoded);
  auto asks = core.way().request(core.subject_of(owner->id), write_request(frame));
  auto limited = with_deadline(cycle_answer_max, std::move(asks));
  const std::string got = co_await std::move(limited);
  const std::optional<answer_frame> is = read_answer(got);
  co_return is && is->kind == answer_kind::value && is->bytes == yes;
}

std::string durable_actors::serve_cycle(const request_frame& request, const std::string& reply,
                                        semaphore::permit permit) {
  if (engine_ == nullptr || !core_.stage().has_joined())
    return write_answer({answer_kind::value, {}, no});
  try {
    auto question = durable::decode<durable::parts::cycle_question>(as_bytes(request.arguments));
    const outside_calls none;
    static_cast<void>(core_.on().spawn(
        answer_cycle(this, core_.node(), reply, std::move(question), std::move(permit))));
    return {};
  } catch (const durable::decode_error& e) {
    return write_answer({answer_kind::malformed, {}, e.what()});
  }
}

task<> durable_actors::answer_cycle(durable_actors* self, state_ref, std::string reply,
                                    durable::parts::cycle_question question, semaphore::permit) {
  constexpr std::uint32_t nodes_max = 16;
  question.nodes_left = std::min(question.nodes_left, nodes_max);
  auto looks = durable::parts::engine::waits_for(self->engine_, std::move(question));
  const bool waits = co_await std::move(looks);
  if (!reply.empty())
    self->core_.answer(std::move(reply), write_answer({answer_kind::value, {}, waits ? yes : no}));
}

}  // namespace troupe::cluster::parts
