#include "troupe/postgres/session.hpp"

#include <openssl/rand.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include "base/invariant.hpp"
#include "base/text/hex.hpp"
#include "postgres/session/refusal.hpp"
#include "postgres/session/session_state.hpp"
#include "postgres/values/types.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/ready.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::postgres {
namespace {

using database::effect;
using database::failure;

constexpr const char* unwanted_too_long =
    "the server has not ended a statement whose caller has gone; look whether it runs, or raise "
    "cancel_timeout";

// They hold the session and its connection only while answers are due. `at_most`: of one wait.
task<> wait_to_read(ref<session> on, std::shared_ptr<wire> used_wire,
                    std::chrono::nanoseconds at_most) {
  try {
    for (bool goes_on = true; goes_on;) {
      const std::stop_token ends = used_wire->ends.get_token();
      bool is_silent = false;
      try {
        const int fd = PQsocket(used_wire->pg);  // negative: libpq has closed it, as below
        if (used_wire->has_more) {
          co_await yield();
        } else if (fd >= 0) {
          co_await readable(fd).timeout(at_most).stop(ends);
        }
      } catch (const timed_out&) {
        is_silent = true;
      } catch (const io_error&) {
        // libpq has closed the socket of a broken connection just now: the session finds it so.
      }
      auto reads = on.ask([used_wire, is_silent](session& self) {
        return is_silent ? self.hear_nothing(*used_wire) : self.read_from(*used_wire);
      });
      goes_on = co_await std::move(reads);
    }
  } catch (const cancelled&) {
    // The connection is closed, or the runtime ends.
  }
}
task<> wait_to_flush(ref<session> on, std::shared_ptr<wire> used_wire) {
  try {
    for (bool goes_on = true; goes_on;) {
      const std::stop_token ends = used_wire->ends.get_token();
      try {
        const int fd = PQsocket(used_wire->pg);
        if (fd >= 0) co_await writable(fd).stop(ends);
      } catch (const io_error&) {
        // as above
      }
      auto writes = on.ask([used_wire](session& self) { return self.flush(*used_wire); });
      goes_on = co_await std::move(writes);
    }
  } catch (const cancelled&) {
  }
}
task<> connect(ref<session> on, std::string target, std::chrono::nanoseconds at_most) {
  std::exception_ptr failed;
  try {
    task<std::shared_ptr<wire>> opens = open_wire(std::move(target), at_most);
    std::shared_ptr<wire> opened = co_await std::move(opens);
    on.tell([opened = std::move(opened)](session& self) mutable { self.use(std::move(opened)); });
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed != nullptr) on.tell([failed](session& self) { self.refuse_waiting(failed); });
}

struct free_cancel {
  void operator()(PGcancel* object) const noexcept { PQfreeCancel(object); }
};
// PQcancel blocks until the server closes the connection, which one behind a proxy may never do: a
// thread of its own does not keep the runtime from its end.
future<> cancel_aside(std::shared_ptr<PGcancel> by) {
  promise<> ended;
  future<> done = ended.get_future();
  std::thread([by = std::move(by), ended = std::move(ended)]() mutable {
    char why_not[256];
    static_cast<void>(PQcancel(by.get(), why_not, sizeof why_not));
    ended.set_value();
  }).detach();
  return done;
}

// The server forgets a cancel that comes before the statement has begun, so that it is repeated
// until the statement has ended.
task<> cancel(ref<session> on, std::shared_ptr<wire> used_wire, std::shared_ptr<PGcancel> by,
              std::chrono::nanoseconds at_most) {
  constexpr std::chrono::milliseconds pause_max{1'000};
  std::chrono::milliseconds pause{20};
  try {
    for (;;) {
      auto asks = on.ask([used_wire](session& self) { return self.wants_cancel(*used_wire); });
      const bool wanted = co_await std::move(asks);
      if (!wanted) co_return;
      try {
        co_await cancel_aside(by).timeout(at_most);
      } catch (const timed_out&) {          // session::hear_nothing gives the connection up
      } catch (const std::system_error&) {  // no thread can be started: the next round tries again
      }
      auto ends = on.ask([used_wire](session& self) { self.end_cancel(*used_wire); });
      co_await std::move(ends);
      co_await sleep_for(pause);
      pause = std::min(pause * 2, pause_max);
    }
  } catch (const cancelled&) {
  }
}

// Makes the text with which all names of a connection's statements begin. It cannot be guessed.
std::string new_name_begin() {
  std::array<unsigned char, 16> secret{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    throw database::error(failure::broken, 0,
                          "troupe: postgres: the operating system gives no random numbers");
  std::string name = "troupe_";
  base::append_hex(name, secret);
  return name + '_';
}

// Bytes that may come without a result, in a row or in reports.
std::size_t unanswered_max(const options& chosen) noexcept {
  constexpr std::size_t reports_max = 16 * 1024 * 1024;
  return chosen.bytes_max + std::min(reports_max, SIZE_MAX - chosen.bytes_max);
}

// Whether the server has closed the connection, or floods it, while nothing was asked.
bool has_ended(wire& used_wire, std::size_t most) {
  constexpr int rounds_max = 16;
  for (int round = 0; round < rounds_max; ++round) {
    char next = 0;
    const ssize_t got = ::recv(PQsocket(used_wire.pg), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0) return errno != EAGAIN && errno != EINTR;
    if (got == 0) return true;
    const wire::input read = used_wire.read(most);
    if (read == wire::input::broken || read == wire::input::flooded) return true;
  }
  return false;
}

}  // namespace

// A session that runs out of memory gives its requests up: their callers get broken_promise.
request::~request() {
  TROUPE_INVARIANT(stage_ != stage::accepted || std::uncaught_exceptions() != 0, "S1");
}

void request::accept() noexcept {
  TROUPE_INVARIANT(stage_ == stage::created, "S1");
  stage_ = stage::accepted;
}
void request::end() noexcept {
  TROUPE_INVARIANT(stage_ != stage::ended, "S1");
  stage_ = stage::ended;
}
void request::answer_with(answer&& given) {
  end();
  asker.set_value(std::move(given));
}
void request::fail(const std::exception_ptr& why) {
  end();
  asker.set_exception(why);
}
void request::drop() noexcept { end(); }
bool request::drop_if_abandoned() noexcept {
  if (!asker.abandoned()) return false;
  drop();
  return true;
}

session::session(std::string target, const options& chosen)
    : state_(std::make_unique<state>(std::move(target), chosen)) {}
session::~session() {
  if (state_->on != nullptr) state_->on->ends.request_stop();
  state_->drop_all();
}
const options& session::chosen() const noexcept { return state_->chosen; }
bool session::is_open() const noexcept { return state_->on != nullptr; }

void session::submit(std::unique_ptr<request> query) {
  // A server that was started anew meanwhile is not worth an error.
  if (state_->on != nullptr && state_->sent.empty() &&
      has_ended(*state_->on, unanswered_max(state_->chosen)))
    lose();
  if (query->text.find('\0') != std::string::npos)
    return query->fail(std::make_exception_ptr(database::error(
        failure::statement, 0,
        "troupe: postgres: the text of the statement has a zero byte, at which it would be cut; "
        "give such values as parameters")));
  state_->waiting.push_back(std::move(query));
  state_->waiting.back()->accept();
  go_on();
}

// The promise shows that a caller has left.
void session::drop_abandoned(std::uint64_t copy_number) {
  state& s = *state_;
  if (copy_number != 0 && s.copy.number == copy_number) copy_give_up();
  std::erase_if(s.waiting, [](const auto& request) { return request->drop_if_abandoned(); });
  cancel_front();
  go_on();
}

void session::roll_back() {
  state& s = *state_;
  if (s.on == nullptr || !s.scopes.is_open()) return;
  s.scopes.close();
  auto query = std::make_unique<request>(request_kind::plain, "ROLLBACK");
  query->epoch = s.epoch;
  query->has_caller = false;
  s.waiting.push_front(std::move(query));
  go_on();
}

void session::refuse_waiting(const std::exception_ptr& failed) {
  state& s = *state_;
  s.stage.fail();
  for (auto& request : std::exchange(s.waiting, {})) request->fail(failed);
}

void session::use(std::shared_ptr<wire> opened) {
  state& s = *state_;
  s.stage.open();
  s.on = std::move(opened);
  ++s.epoch;
  s.name_begin = new_name_begin();
  go_on();
}

bool session::wants_cancel(const wire& used_wire) {
  state& s = *state_;
  if (s.on.get() != &used_wire) return false;
  const bool wanted = !s.sent.empty() && s.sent.front().is_abandoned();
  wanted ? s.cancelling.send() : s.cancelling.end();
  return wanted;
}

// The server has signalled its process, which forgets the signal if no statement runs.
void session::end_cancel(const wire& used_wire) {
  state& s = *state_;
  if (s.on.get() != &used_wire) return;
  s.cancelling.arrive();
  ++s.cancels;
  go_on();
}

void session::cancel_front() {
  state& s = *state_;
  if (s.on == nullptr || s.cancelling.is_under_way() || s.sent.empty() ||
      !s.sent.front().is_abandoned())
    return;
  const std::shared_ptr<PGcancel> by(PQgetCancel(s.on->pg), free_cancel());
  if (by == nullptr) return;
  s.cancelling.begin();
  static_cast<void>(spawn(cancel(self(this), s.on, by, s.chosen.cancel_timeout)));
}

bool session::read_from(const wire& used_wire) {
  state& s = *state_;
  if (s.on.get() != &used_wire) return false;
  if (s.is_paused()) {
    s.reading = false;
    return false;
  }
  s.heard = now();
  const wire::input came = s.on->read(unanswered_max(s.chosen));
  if (came == wire::input::flooded) {
    // The next connection would be flooded as well: waiting requests fail now.
    const std::string reason =
        "the server has sent more bytes without a result than one row may have; look whether it "
        "is a PostgreSQL server, or raise bytes_max";
    fail_waiting(reason, 0);
    lose(reason);
    return false;
  }
  go_on();
  if (s.on.get() != &used_wire) return false;
  if (s.is_unwanted_for_ever(now())) {
    lose(unwanted_too_long);
    return false;
  }
  if (came == wire::input::broken) {
    lose();
    return false;
  }
  s.reading = s.wants_to_read();
  return s.reading;
}

bool session::hear_nothing(const wire& used_wire) {
  state& s = *state_;
  if (s.on.get() != &used_wire) return false;
  note_unwanted();
  s.reading = s.wants_to_read();
  if (s.is_late(now())) {
    lose("the server has not answered in time; look whether it runs, or raise answer_timeout");
    return false;
  }
  if (s.is_unwanted_too_long(now())) {
    lose(unwanted_too_long);
    return false;
  }
  return s.reading;
}

void session::note_unwanted() {
  state& s = *state_;
  if (s.sent.empty()) return;
  std::optional<std::chrono::nanoseconds>& since = s.sent.front().unwanted_since;
  if (!s.is_front_unwanted()) {
    since.reset();
  } else if (!since) {
    since = now();
  }
}

bool session::flush(const wire& used_wire) {
  state& s = *state_;
  if (s.on.get() != &used_wire) return false;
  s.flushing = PQflush(used_wire.pg) == 1;
  go_on();
  return s.flushing;
}

// Sends requests and takes answers until neither is possible.
void session::go_on() {
  state& s = *state_;
  do {
    send_waiting();
    move_copy();
  } while (s.on != nullptr && take_answers());
  if (s.on == nullptr) {
    if (s.waiting.empty() || s.stage.is_connecting()) return;
    s.stage.begin_to_connect();
    static_cast<void>(spawn(connect(self(this), s.target, s.chosen.connect_timeout)));
    return;
  }
  if (PQstatus(s.on->pg) != CONNECTION_OK) return lose();
  if (s.sent.empty()) {
    s.busy_since.reset();
  } else if (!s.busy_since) {
    s.busy_since = now();
  }
  note_unwanted();
  take_notifications();
  if (!s.reading && s.wants_to_read()) {
    s.reading = true;
    static_cast<void>(spawn(wait_to_read(self(this), s.on, s.silence_max())));
  }
  if (!s.flushing && PQflush(s.on->pg) == 1) {
    s.flushing = true;
    static_cast<void>(spawn(wait_to_flush(self(this), s.on)));
  }
  cancel_front();
}

// Fails the waiting requests that have waited on more than `most` lost connections.
void session::fail_waiting(const std::string& reason, unsigned most) {
  const auto failed = std::make_exception_ptr(lost_error(reason, "08006", effect::none));
  std::erase_if(state_->waiting, [&](const auto& request) {
    if (++request->lost_connections <= most) return false;
    request->fail(failed);
    return true;
  });
}

// The connection has ended. Sent requests fail. Waiting requests move to the next connection, and
// fail when they have seen the third one lost.
void session::lose(std::string reason) {
  constexpr unsigned lost_connections_max = 3;
  state& s = *state_;
  s.on->ends.request_stop();
  if (reason.empty()) reason = PQerrorMessage(s.on->pg);
  s.on.reset();
  fail_waiting(reason, lost_connections_max - 1);
  for (const listening& listener : std::exchange(s.listeners, {})) listener.reader.close();
  if (s.copy.is != copying::no && s.copy.is != copying::ended) {
    s.copy.failed = std::make_exception_ptr(
        lost_error(reason, "08006", s.copy.is == copying::ends ? effect::unknown : effect::none));
    finish_copy(s.sent.front());
  }
  s.reading = s.flushing = false;
  s.stage.lose();
  s.cancelling.end();
  s.busy_since.reset();
  s.statements.clear();
  s.forgotten.clear();
  if (s.scopes.is_open()) s.lost_scope = s.scopes.current();
  s.scopes.close();
  // The server has not seen the statements behind the one at which it has ended.
  const bool told = !s.sent.empty() && s.sent.front().refusal == refused_as::fatal;
  bool first = true;
  s.syncs = 0;
  for (sent_request& sent : std::exchange(s.sent, {})) {
    const bool in_front = std::exchange(first, false);
    if (sent.query == nullptr) continue;
    if (sent.failed() && !is_fatal(sent.result.get())) {
      sent.query->fail(std::make_exception_ptr(refusal(sent.result.get())));
      continue;
    }
    const bool may_be_done = sent.answered || is_panic(sent.refused());
    const bool undone = sent.query->kind == request_kind::begin ||
                        (sent.query->scope != 0 && sent.query->kind != request_kind::commit) ||
                        (told && !(in_front && may_be_done));
    sent.query->fail(std::make_exception_ptr(
        lost_error(in_front && told ? sent.error_text() : reason,
                   in_front && told ? sqlstate_of(sent.refused()) : std::string_view("08006"),
                   undone ? effect::none : effect::unknown)));
  }
  go_on();
}

}  // namespace troupe::postgres
