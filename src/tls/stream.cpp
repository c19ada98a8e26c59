#include "troupe/tls/stream.hpp"

#include "io/suspensions/at_once.hpp"
#include "tls/certificate.hpp"
#include "tls/tls_connection.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {
namespace tls {
namespace {

// How long sending an alert may take. Our side must learn the reason; telling the peer is a
// courtesy.
constexpr std::chrono::milliseconds alert_wait_max{100};

// An operation with limits gets a coroutine of its own, and is passed by reference. No coroutine
// frame is therefore too large for the pool of blocks.
struct limited_read {
  stream& from;
  std::span<std::byte> to;
  const tasks::limits& within;
  io::limited<io::read_job> operator co_await() const {
    return from.read(to).timeout(within.left()).stop(within.stop());
  }
};
struct limited_write {
  stream& target;
  std::string_view bytes;
  const tasks::limits& within;
  io::limited<io::write_job<std::string_view>> operator co_await() const {
    return target.write(bytes).timeout(within.left()).stop(within.stop());
  }
};
template <class Operation>
task<std::size_t> carry_out(const Operation& asked) {
  co_return co_await asked;
}

// Sends everything that is pending. The caller has the writer lock.
task<> flush(connection& on, const tasks::limits& within) {
  for (;;) {
    const std::string_view part = on.outgoing();
    if (part.empty()) co_return;
    std::size_t bytes = 0;
    if (within.any()) {
      const limited_write asked{on.out(), part, within};
      bytes = co_await carry_out(asked);
    } else {
      bytes = co_await on.out().write(part);
    }
    on.sent(bytes);
  }
}

task<> fill(connection& on, const tasks::limits& within) {
  const std::span<std::byte> room = on.room();
  std::size_t bytes = 0;
  if (within.any()) {
    const limited_read asked{on.in(), room, within};
    bytes = co_await carry_out(asked);
  } else {
    bytes = co_await on.in().read(room);
  }
  on.arrived(bytes);
}

// Sends the alert with the reason, if the writer lock is free. If a write is under way, the
// alert goes with that. Waiting for the write could take without end, because the peer may wait for
// us to read.
task<> tell_peer(connection& on, bool has_lock) {
  if (!has_lock && !on.take_lock(lock_kind::writer)) co_return;
  std::optional<held_lock> held;
  if (!has_lock) held.emplace(on, lock_kind::writer, held_lock::taken{});
  const tasks::limits soon(alert_wait_max, {});
  try {
    co_await flush(on, soon);
  } catch (const error&) {  // the first failure counts
  }
}

task<> shake(connection_ptr on, tasks::limits within) {
  const held_lock reads(*on, lock_kind::reader);
  const held_lock writes(*on, lock_kind::writer);
  for (;;) {
    const step how = on->shake();
    if (how == step::failed || how == step::ended) {
      co_await tell_peer(*on, true);
      on->throw_failure();
    }
    co_await flush(*on, within);
    if (how == step::done) co_return;
    co_await fill(*on, within);
  }
}

// Waits for the reader lock: a writer has it for a moment. If another read has it, this throws.
task<> await_reader_lock(connection& on, const tasks::limits& within) {
  for (;;) {
    std::optional<future<>> news = on.lock_after_writer();
    if (!news) co_return;
    co_await std::move(*news).timeout(within.left()).stop(within.stop());
  }
}

// Throws cancelled in a call that was cancelled.
task<> let_others_in() { co_await yield(); }

task<std::size_t> read_bytes(connection_ptr on, std::span<std::byte> buffer, bool whole,
                             std::size_t behind, tasks::limits within) {
  on->check_usable();
  const bool waits = !on->take_lock(lock_kind::reader);
  if (waits) co_await await_reader_lock(*on, within);
  const held_lock reads(*on, lock_kind::reader, held_lock::taken{});
  // A future also gives its value to a call that was cancelled, which must read nothing.
  if (waits) co_await let_others_in();
  std::size_t done = 0;
  while (done < buffer.size()) {
    std::size_t bytes = 0;
    const step how = on->read(buffer.subspan(done), behind, bytes);
    if (how == step::done) {
      done += bytes;
      if (!whole) break;
    } else if (how == step::wants_input) {
      try {
        co_await fill(*on, within);
      } catch (...) {  // timed_out or cancelled: the next read gets the bytes that have arrived
        on->put_back(buffer.first(done), behind);
        throw;
      }
    } else if (how == step::failed) {
      co_await tell_peer(*on, false);
      on->throw_failure();
    } else {
      if (whole) throw end_of_stream("read_exact", on->name(), done);
      break;
    }
  }
  co_return done;
}

// A message that the peer sends beside its data has arrived in part. Nothing can be written before
// the rest of it has arrived.
task<> await_input(connection& on, const tasks::limits& within) {
  std::optional<future<>> news = on.lock_or_news();
  if (news) {
    co_await std::move(*news).timeout(within.left()).stop(within.stop());
    co_return;
  }
  const held_lock reads(on, lock_kind::reader, held_lock::taken{});
  // A read on another thread may have got bytes meanwhile, and left some of them.
  if (!on.has_unread()) co_await fill(on, within);
}

task<std::size_t> write_bytes(connection_ptr on, std::string_view bytes, bool whole,
                              tasks::limits within) {
  on->check_usable();
  const held_lock writes(*on, lock_kind::writer);
  std::size_t done = 0;
  co_await flush(*on, within);  // the rest of an earlier write
  while (done < bytes.size()) {
    const bool others_turn = co_await io::at_once::turn_is_over();
    if (others_turn) co_await let_others_in();
    const std::string_view chunk = bytes.substr(done, connection::chunk_bytes);
    step how = on->write(chunk);
    while (how == step::wants_input) {
      co_await await_input(*on, within);
      how = on->write(chunk);
    }
    if (how != step::done) {
      co_await tell_peer(*on, true);
      on->throw_failure();
    }
    co_await flush(*on, within);
    done += chunk.size();
    if (!whole) break;
  }
  co_return done;
}

task<std::size_t> write_owned(connection_ptr on, std::string bytes, tasks::limits within) {
  co_return co_await write_bytes(std::move(on), bytes, true, std::move(within));
}

task<> end_writing(connection_ptr on, tasks::limits within) {
  on->check_usable();
  const held_lock writes(*on, lock_kind::writer);
  co_await flush(*on, within);
  step how = on->say_goodbye();
  while (how == step::wants_input) {
    co_await await_input(*on, within);
    how = on->say_goodbye();
  }
  if (how == step::failed) on->throw_failure();
  try {
    co_await flush(*on, within);
  } catch (const io_error&) {
    if (!on->peer_is_done()) throw;  // otherwise the peer closed after all data was sent
  }
}

}  // namespace

task<> handshake_call::start(tasks::limits within) && {
  return shake(std::move(on_), std::move(within));
}
task<> shutdown_call::start(tasks::limits within) && {
  return end_writing(std::move(on_), std::move(within));
}
task<std::size_t> read_call::start(tasks::limits within) && {
  return read_bytes(std::move(on_), to_, whole_, behind_, std::move(within));
}
task<std::size_t> write_call::start(tasks::limits within) && {
  if (owns_) return write_owned(std::move(on_), std::move(owned_), std::move(within));
  return write_bytes(std::move(on_), bytes_, whole_, std::move(within));
}

bool read_ahead::must_wait(const tls_stream& from) noexcept {
  return from.connection_.connection != nullptr && from.connection_.connection->is_read();
}
void read_ahead::hold(std::string_view bytes) {
  on_->put_back(std::as_bytes(std::span(bytes)), held_);
  held_ += bytes.size();
}
void read_ahead::take() noexcept {
  if (const std::size_t held = std::exchange(held_, 0)) on_->drop_put_back(held);
}
void read_ahead::give_back(std::string_view bytes) noexcept {
  if (on_ == nullptr || bytes.empty()) return;
  try {
    on_->put_back(std::as_bytes(std::span(bytes)), held_);
  } catch (const std::bad_alloc&) {  // as io::read_ahead
  }
}

}  // namespace tls

tls_stream tls_stream::client(const tls_context& trust, stream&& over, const std::string& host) {
  return client(trust, std::move(over), stream(), host);
}
tls_stream tls_stream::client(const tls_context& trust, stream&& in, stream&& out,
                              const std::string& host) {
  const auto state = trust.slot_->state();
  if (state->server())
    throw option_error(
        "troupe: tls_stream::client: this is a server's context; give the result of "
        "tls_context::client()");
  return tls_stream(std::make_shared<tls::connection>(state, std::move(in), std::move(out), host));
}
tls_stream tls_stream::server(const tls_context& self, stream&& over) {
  return server(self, std::move(over), stream());
}
tls_stream tls_stream::server(const tls_context& self, stream&& in, stream&& out) {
  const auto state = self.slot_->state();
  if (!state->server())
    throw option_error(
        "troupe: tls_stream::server: this is a client's context; give the result of "
        "tls_context::server()");
  return tls_stream(
      std::make_shared<tls::connection>(state, std::move(in), std::move(out), std::string()));
}

const tls::connection_ptr& tls_stream::on() const {
  if (connection_.connection == nullptr)
    throw usage_error("troupe: tls_stream: it is not open: it was closed or moved from");
  return connection_.connection;
}

bool tls_stream::is_open() const noexcept {
  return connection_.connection != nullptr && connection_.connection->in().is_open();
}
int tls_stream::fd() const noexcept {
  return connection_.connection == nullptr ? -1 : connection_.connection->in().fd();
}
bool tls_stream::has_input() const noexcept {
  return connection_.connection != nullptr && connection_.connection->has_input();
}
void tls_stream::close() noexcept {
  if (connection_.connection != nullptr) connection_.connection->close();
}

std::string tls_stream::alpn() const {
  if (connection_.connection == nullptr) return {};
  return connection_.connection->inspect([](SSL& ssl) {
    const unsigned char* chosen = nullptr;
    unsigned int bytes = 0;
    SSL_get0_alpn_selected(&ssl, &chosen, &bytes);
    return chosen == nullptr ? std::string()
                             : std::string(reinterpret_cast<const char*>(chosen), bytes);
  });
}

std::string tls_stream::version() const {
  if (connection_.connection == nullptr) return {};
  return connection_.connection->inspect([](SSL& ssl) {
    return std::string(SSL_is_init_finished(&ssl) != 0 ? SSL_get_version(&ssl) : "");
  });
}

std::string tls_stream::cipher() const {
  if (connection_.connection == nullptr) return {};
  return connection_.connection->inspect([](SSL& ssl) {
    const char* name = SSL_get_cipher_name(&ssl);
    return std::string(SSL_get_current_cipher(&ssl) == nullptr ? "" : name);
  });
}

bool tls_stream::resumed() const {
  return connection_.connection != nullptr &&
         connection_.connection->inspect([](SSL& ssl) { return SSL_session_reused(&ssl) != 0; });
}

std::optional<tls_certificate> tls_stream::peer_certificate() const {
  if (connection_.connection == nullptr) return std::nullopt;
  return connection_.connection->inspect([](SSL& ssl) -> std::optional<tls_certificate> {
    const X509* certificate = SSL_get0_peer_certificate(&ssl);
    if (certificate == nullptr) return std::nullopt;
    ERR_clear_error();
    tls_certificate described = tls::describe(*certificate);
    ERR_clear_error();
    return described;
  });
}

tls_stream::owned& tls_stream::owned::operator=(owned&& other) noexcept {
  if (this == &other) return *this;
  if (connection != nullptr) connection->close();
  connection = std::move(other.connection);
  return *this;
}
tls_stream::owned::~owned() {
  if (connection != nullptr) connection->close();
}

}  // namespace troupe
