// session_state: the state that a session keeps of its connection.
//
// Invariants
//   S1  a request is in `waiting` or in `sent`, and leaves them only with its promise resolved, or
//       when its caller has left.
//   S2  `sent` has the order of the syncs in the pipeline: the next answer belongs to the
//       first.
//   S3  requests are sent in the order of `waiting`; while one is being prepared, none is sent.
//   S4  a request of a transaction scope is sent only while the scope is open
//       (docs/protocols/database_sessions.md).
#pragma once

#include <libpq-fe.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "database/statement_counts.hpp"
#include "postgres/session/session_stages.hpp"
#include "postgres/session/wire.hpp"
#include "troupe/kit/lru_map.hpp"
#include "troupe/postgres/copy.hpp"
#include "troupe/postgres/session.hpp"

namespace troupe::postgres {

struct free_result {
  void operator()(PGresult* object) const noexcept { PQclear(object); }
};
using owned_result = std::unique_ptr<PGresult, free_result>;

// A statement as the server has prepared it.
struct prepared {
  std::string name;                  // empty: only its types are kept
  std::uint64_t number = 0;          // differs for each that was prepared
  std::vector<std::uint32_t> takes;  // the types of its parameters
  std::vector<std::uint32_t> forms;  // the same, and of domains the types below them
  bool was_used = false;
  bool ready = false;
  bool binary = false;  // all its columns can be read in their binary form
};

// Whether the server has refused a request; `fatal`: it has ended the connection by that.
enum class refused_as : std::uint8_t { no, usual, fatal };

// The part of the pipeline up to one sync.
struct sent_request {
  // Null: it prepares a statement, or no one waits for it.
  std::unique_ptr<request> query;
  std::string prepares;  // the text of the statement that it prepares
  std::string asks_for;  // the text of the statement whose domains it asks for
  owned_result result;   // the answer, or the first refusal
  std::int64_t began_ns = database::statement_begins();
  std::uint64_t cancels = 0;
  std::uint64_t statement = 0;      // the number of the prepared statement
  std::vector<std::uint32_t> took;  // its types, if it was used before: they may be old
  row_store rows;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> forms;  // of `asks_for`
  std::exception_ptr past_limit;  // the answer is too large: its other rows are dropped
  bool has_committed = false;     // a script, a part of its work
  refused_as refusal = refused_as::no;
  bool answered = false;            // an answer has arrived, before the refusal if there is one
  std::size_t answers = 0;          // of a request with several rows
  std::int64_t changed_before = 0;  // by all of them but the last

  bool unwanted = false;  // its other rows: it is cancelled
  // Since when the answer has no waiting caller, of the first one alone.
  std::optional<std::chrono::nanoseconds> unwanted_since;

  bool is_abandoned() const noexcept {
    return unwanted || (query != nullptr && query->asker.abandoned());
  }
  bool failed() const noexcept { return refusal != refused_as::no; }
  // The server refuses it, perhaps once more. Returns whether this is the first refusal, whose
  // result is kept.
  bool refuse(bool is_fatal) noexcept {
    const bool is_first = !failed();
    if (is_fatal) {
      refusal = refused_as::fatal;
    } else if (is_first) {
      refusal = refused_as::usual;
    }
    return is_first;
  }
  const PGresult* refused() const noexcept { return failed() ? result.get() : nullptr; }
  std::string_view error_text() const noexcept {
    return failed() ? PQresultErrorMessage(result.get()) : "";
  }
};

// A COPY, behind the answer that has begun it.
enum class copying : std::uint8_t { no, in, out, ends, ended };
struct copy_state {
  copying is = copying::no;
  std::uint64_t number = 0;  // of the request that has begun it
  std::string text;          // to be put, or got and not given yet
  std::optional<promise<>> put;
  std::optional<channel<parts::copied>> get;  // who waits for the next part
  std::optional<promise<answer>> end;
  std::exception_ptr failed;
};

struct listening {
  std::string name;
  channel<notification> reader;
  std::uint64_t missed = 0;
};

struct session::state {
  state(std::string to, const options& given) : target(std::move(to)), chosen(given) {}

  // A reader that does not ask for more holds the server back.
  bool is_paused() const noexcept {
    return copy.is == copying::out && !copy.get && !sent.front().unwanted;
  }
  // Whether a cancel can end a request that is sent now.
  bool may_be_hit() const noexcept {
    return cancelling.travels() || std::ranges::any_of(sent, [](const sent_request& entry) {
             return entry.is_abandoned();
           });
  }
  bool wants_to_read() const noexcept {
    return (!sent.empty() || !listeners.empty()) && !is_paused();
  }

  static bool is_wanted(const request& candidate) noexcept {
    return candidate.has_caller && !candidate.asker.abandoned();
  }
  // Whether the next answer has no waiting caller; where the session itself has sent the request,
  // whether the answers behind it have none either. Something was sent.
  bool is_front_unwanted() const noexcept {
    const sent_request& front = sent.front();
    if (front.is_abandoned()) return true;
    if (front.query != nullptr && front.query->has_caller) return false;
    return std::ranges::none_of(waiting, [](const auto& entry) { return is_wanted(*entry); }) &&
           std::ranges::none_of(sent, [](const sent_request& entry) {
             return entry.query != nullptr && is_wanted(*entry.query);
           });
  }
  bool is_late(std::chrono::nanoseconds at) const noexcept {
    return chosen.answer_timeout.count() > 0 && busy_since && copy.is == copying::no &&
           at - std::max(*busy_since, heard) >= chosen.answer_timeout;
  }
  bool is_unwanted_too_long(std::chrono::nanoseconds at) const noexcept {
    return !sent.empty() && sent.front().unwanted_since &&
           at - std::max(*sent.front().unwanted_since, heard) >= chosen.cancel_timeout;
  }
  // However much the server sends.
  bool is_unwanted_for_ever(std::chrono::nanoseconds at) const noexcept {
    return !sent.empty() && sent.front().unwanted_since &&
           (at - *sent.front().unwanted_since) / 10 >= chosen.cancel_timeout;
  }
  // After so long without a byte is_late and is_unwanted_too_long are looked at.
  std::chrono::nanoseconds silence_max() const noexcept {
    const std::chrono::nanoseconds part = chosen.cancel_timeout / 4;
    if (chosen.answer_timeout.count() == 0) return part;
    return std::min<std::chrono::nanoseconds>(part, chosen.answer_timeout);
  }

  // As far as it is known: while answers are due, the transaction of a scope counts as open.
  database::transaction_state transaction() const noexcept {
    switch (PQtransactionStatus(on->pg)) {
      case PQTRANS_IDLE:
        return database::transaction_state::none;
      case PQTRANS_INERROR:
        return database::transaction_state::failed;
      default:
        return database::transaction_state::open;
    }
  }

  // Ends one request in the pipeline. Returns false if the connection has ended.
  bool add_sync() noexcept {
    if (PQpipelineSync(on->pg) != 1) return false;
    ++syncs;
    return true;
  }

  // The session ends.
  void drop_all() noexcept {
    for (const auto& request : waiting) request->drop();
    for (const sent_request& entry : sent) {
      if (entry.query != nullptr) entry.query->drop();
    }
  }

  const std::string target;
  const options chosen;
  std::shared_ptr<wire> on;  // null: not connected
  std::deque<std::unique_ptr<request>> waiting;
  std::deque<sent_request> sent;
  std::size_t syncs = 0;  // in the pipeline, not answered yet
  kit::lru_map<std::string, prepared> statements;
  arguments values;         // of the statement that is being sent
  std::uint64_t epoch = 0;  // counts the connections
  database::transaction_scopes scopes;
  std::uint64_t lost_scope = 0;  // the scope whose connection was lost last
  std::uint64_t cancels = 0;     // how many have arrived
  // The names of statements: a secret of this connection, and a number. Behind a pooler that is not
  // known here a name is at worst unknown to the server, but never another program's statement.
  std::string name_begin;
  std::uint64_t names = 0;
  std::vector<std::string> forgotten;            // names that the server still has
  std::map<std::uint32_t, std::uint32_t> forms;  // of the database's own types: their base types
  copy_state copy;
  std::vector<listening> listeners;
  std::optional<std::chrono::nanoseconds> busy_since;  // if something is sent and not answered
  std::chrono::nanoseconds heard{0};                   // when bytes arrived last
  bool reading = false;                                // a task waits for the socket
  bool flushing = false;
  connection_stage stage;
  cancel_stage cancelling;
};

}  // namespace troupe::postgres
