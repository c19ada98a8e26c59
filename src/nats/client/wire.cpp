#include "nats/client/wire.hpp"

#include <array>

#include "nats/client/credentials.hpp"
#include "troupe/dns/connect.hpp"
#include "troupe/io/error.hpp"
#include "troupe/nats/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::nats {
namespace {

constexpr std::size_t piece_bytes = 64 * 1024;

[[noreturn]] void fail(const wire& at, failure kind, const std::string& reason) {
  throw error(kind, "troupe: nats: the server " + at.address.authority() + " " + reason);
}

// The next event but +OK; the server's pings are answered.
task<parser::event> next_event(wire& on) {
  std::array<char, 4096> buffer;
  for (;;) {
    const parser::step step = on.reads.next(on.rest);
    on.rest.erase(0, step.consumed);
    switch (step.outcome) {
      case parser::event::ok:
        break;
      case parser::event::ping: {
        task<> answers = on.write("PONG\r\n", std::chrono::nanoseconds::max());
        co_await std::move(answers);
        break;
      }
      case parser::event::refused:
        fail(on, failure::denied, "refuses us: " + on.reads.text());
      case parser::event::broken:
        fail(on, failure::unreachable, "does not speak NATS: " + on.reads.text());
      case parser::event::need_more: {
        task<std::size_t> reads = on.read(buffer);
        const std::size_t bytes = co_await std::move(reads);
        if (bytes == 0) fail(on, failure::unreachable, "has ended the connection");
        on.rest.append(buffer.data(), bytes);
        break;
      }
      default:
        co_return step.outcome;
    }
  }
}

void take_info(wire& on) {
  std::optional<server_info> about = server_info::parse(on.reads.text());
  if (!about) fail(on, failure::unreachable, "does not speak NATS: its INFO is no JSON");
  on.about = std::move(*about);
}

task<tls_context> trust_of(std::shared_ptr<wire_options> by) {
  if (!by->trust) {
    auto make = [by] { return tls_context::client(by->chosen.tls.value_or(tls_options())); };
    auto making = blocking(std::move(make));
    by->trust = co_await std::move(making);
  }
  co_return *by->trust;
}

task<> secure(wire& on, std::shared_ptr<wire_options> by) {
  // No peer may speak in the server's name before it has proved its identity.
  if (!on.rest.empty()) fail(on, failure::unreachable, "has sent more than INFO before TLS");
  task<tls_context> makes = trust_of(std::move(by));
  const tls_context trust = co_await std::move(makes);
  on.secure =
      tls_stream::client(trust, std::move(on.plain),
                         on.address.tls_name.empty() ? on.address.host : on.address.tls_name);
  co_await on.secure.handshake();
}

task<> wait_for_pong(wire& on) {
  for (;;) {
    task<parser::event> waits = next_event(on);
    const parser::event event = co_await std::move(waits);
    if (event == parser::event::pong) co_return;
    if (event != parser::event::info)
      fail(on, failure::unreachable, "sends messages before it has taken us");
    take_info(on);
  }
}

}  // namespace

task<std::size_t> wire::read(std::span<char> into) {
  if (secure.is_open()) co_return co_await secure.read(into).stop(ends.get_token());
  co_return co_await plain.read(into).stop(ends.get_token());
}

task<> wire::write(std::string_view bytes, std::chrono::nanoseconds piece_time) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    if (secure.is_open()) {
      co_await secure.write_all(piece).timeout(piece_time).stop(ends.get_token());
    } else {
      co_await plain.write_all(piece).timeout(piece_time).stop(ends.get_token());
    }
    bytes.remove_prefix(piece.size());
  }
}

task<wire_ptr> open_wire(server to, std::shared_ptr<wire_options> by) {
  const options& chosen = by->chosen;
  parser_limits limits;
  limits.header_bytes = chosen.header_bytes_max;
  limits.message_bytes = chosen.message_bytes_max;
  const wire_ptr on = std::make_shared<wire>(std::move(to), limits);
  on->plain = co_await troupe::connect(on->address.host, on->address.port);
  task<parser::event> reads = next_event(*on);
  if (co_await std::move(reads) != parser::event::info)
    fail(*on, failure::unreachable, "does not begin with INFO");
  take_info(*on);
  const bool wants_tls = on->address.secure || chosen.tls.has_value();
  if (wants_tls && !on->about.tls_required && !on->about.tls_available)
    fail(*on, failure::unreachable, "has no TLS, which the address or the options want");
  if (wants_tls || on->about.tls_required) {
    task<> secures = secure(*on, by);
    co_await std::move(secures);
  }
  task<identity> makes =
      make_identity(on->address, on->about.nonce, std::shared_ptr<const options>(by, &chosen));
  const identity self = co_await std::move(makes);
  const std::string says = hello(chosen.name, on->secure.is_open(), self);
  // A server that refuses the client may have sent the reason and disconnected before it reads
  // this.
  std::exception_ptr unsent;
  try {
    task<> writes = on->write(says, std::chrono::nanoseconds::max());
    co_await std::move(writes);
  } catch (const io_error&) {
    unsent = std::current_exception();
  }
  try {
    task<> waits = wait_for_pong(*on);
    co_await std::move(waits);
  } catch (const io_error&) {
    if (unsent != nullptr) std::rethrow_exception(unsent);
    throw;
  }
  co_return on;
}

}  // namespace troupe::nats
