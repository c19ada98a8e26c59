#include "http/client/sending/reach.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "http/client/streams/stream_pool.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {
namespace {

// A request that a server refuses so often is not sent again; nor one that has to leave a
// connection so often.
constexpr int refusals_max = 8, moves_max = 10;
// Before it is sent again: so long at first, then twice as long each time. A server may count a
// stream for a moment longer than its answer takes.
constexpr std::chrono::milliseconds first_pause{1};

// `fresh`: kept connections are not used.
task<wire_ptr> reach_wire(client_core& core, const url& at, const route& by,
                          const tasks::limits& life, std::optional<connection_slot> slot,
                          bool fresh, bool& is_kept) {
  if (!slot) slot.emplace(co_await core.slots.take(by.name, life));
  const bool may_share = !by.alone || by.streams;
  wire_ptr wire = fresh || !may_share ? nullptr : core.pool.take(by.name);
  if (wire != nullptr && by.alone && wire->streams == nullptr) {
    wire->origin = by.name;
    core.pool.put(std::move(wire));
  }
  is_kept = wire != nullptr;
  if (!is_kept && by.alone) core.pool.trim(by.name, slot->others());
  if (!is_kept) wire = co_await connect(core, at, by, life);
  wire->origin = by.name;
  wire->slot.emplace(std::move(*slot));
  co_return wire;
}

// Makes a connection of HTTP/2 of the wire; returns null if the wire is of no use any more.
task<std::shared_ptr<stream_exchange>> share(std::shared_ptr<client_core> core, const url& at,
                                             const tasks::limits& life, wire_ptr wire, bool is_kept,
                                             stream_turn& turn) {
  const auto connection = core->streams.make(std::move(wire));
  if (is_kept) {
    const bool is_good = co_await connection->catch_up(life);
    if (!is_good) co_return nullptr;
  }
  auto asks = std::make_shared<stream_exchange>(core, at, life, connection);
  turn.connected(connection);
  connection->start(core);
  co_return asks;
}

task<reached> reach_new(std::shared_ptr<client_core> core, const url& at, const route& by,
                        const tasks::limits& life, stream_turn& turn, bool fresh) {
  for (;;) {
    bool is_kept = false;
    wire_ptr wire = co_await reach_wire(*core, at, by, life,
                                        std::exchange(turn.slot(), std::nullopt), fresh, is_kept);
    if (wire->streams == nullptr) {
      if (by.streams) turn.connected_plain();
      auto asks = std::make_shared<wire_exchange>(core, at, life);
      asks->on(std::move(wire));
      co_return reached(std::move(asks), is_kept);
    }
    std::shared_ptr<stream_exchange> asks =
        co_await share(core, at, life, std::move(wire), is_kept, turn);
    if (asks != nullptr) co_return reached(std::move(asks), is_kept);
  }
}

}  // namespace

task<reached> reach(std::shared_ptr<client_core> core, url at, route by, tasks::limits life,
                    bool fresh) {
  stream_turn turn;
  if (by.streams) turn = co_await core->streams.take(by.name, life);
  if (turn.has_place())
    co_return reached(std::make_shared<stream_exchange>(core, at, life, turn.take()), true);
  try {
    co_return co_await reach_new(core, at, by, life, turn, fresh);
  } catch (const cancelled&) {
    throw;
  } catch (const origin_full&) {
    throw;
  } catch (const error&) {
    // Those that wait for this connection would find the same.
    if (!life.over()) turn.failed(std::current_exception());
    throw;
  }
}

task<attempt> try_once(exchange& by, client_request& asked, const route& way,
                       const std::string& lines) {
  attempt result;
  try {
    co_await by.send_request(asked, way, lines);
  } catch (const io_error&) {
    if (!by.refused_bytes()) throw;  // thrown by the caller's function, not by the connection
    result.failure = std::current_exception();
  } catch (const timed_out&) {
    if (!by.refused_bytes()) throw;
    result.failure = std::current_exception();
  } catch (const client_error&) {  // of a stream
    if (!by.refused_bytes()) throw;
    result.failure = std::current_exception();
  }
  std::exception_ptr second;
  try {
    co_await by.read_head(method_named(asked.method()));
  } catch (const io_error&) {
    second = std::current_exception();
  } catch (const client_error& e) {
    second = std::current_exception();
    result.stale = e.reason() == client_failure::closed;
  }
  if (second == nullptr) {
    result.failure = nullptr;
    co_return result;
  }
  result.stale = !by.heard();
  if (result.failure == nullptr) result.failure = second;
  co_return result;
}

// Those that a server refuses are asked again after a pause; those that a connection no longer
// takes, on another one at once; those that found a kept connection dead, on a fresh one.
task<bool> repetition::follows(const reached& used, const attempt& ended, tasks::limits life) {
  const exchange::refusal how = is_spent_ ? exchange::refusal::none : used.by()->refused();
  if (how == exchange::refusal::refused && refusals_ < refusals_max) {
    co_await sleep_for(
        std::min<std::chrono::nanoseconds>(first_pause * (1 << refusals_++), life.left()));
    co_return true;
  }
  if (how == exchange::refusal::moved && ++moves_ <= moves_max) co_return true;
  const bool goes_on = used.is_kept && may_repeat_ && ended.stale && !wants_fresh_;
  wants_fresh_ = wants_fresh_ || goes_on;
  co_return goes_on;
}

}  // namespace troupe::http
