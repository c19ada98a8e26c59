// session: the answers of the server.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "base/invariant.hpp"
#include "postgres/session/first_word.hpp"
#include "postgres/session/refusal.hpp"
#include "postgres/session/session_state.hpp"
#include "postgres/values/types.hpp"
#include "troupe/database/error.hpp"

namespace troupe::postgres {

using database::failure;

namespace {

// Which row of parameters was refused, if there are several.
std::string place_of(const sent_request& done) {
  const std::size_t rows = done.query->rows();
  if (rows == 1) return {};
  // A rule that is checked at the end of the transaction has met none of them alone.
  if (done.answers >= rows) return "behind the last of " + std::to_string(rows) + " rows: ";
  return "row " + std::to_string(done.answers + 1) + " of " + std::to_string(rows) + ": ";
}

}  // namespace

bool request::may_be_stored_in_parts() const {
  return scope == 0 && (kind == request_kind::statement || kind == request_kind::script) &&
         may_commit_inside(text);
}

// Takes the answers that have arrived, without waiting. Returns whether a request has ended.
bool session::take_answers() {
  state& s = *state_;
  PGconn* const pg = s.on->pg;
  const std::size_t before = s.sent.size();
  int ends = 0;
  while (!s.sent.empty() && s.copy.is != copying::in && s.copy.is != copying::out) {
    // Takes effect only before the answer to a statement: its rows then arrive one by one.
    PQsetSingleRowMode(pg);
    if (PQisBusy(pg) != 0) break;
    PGresult* const result = PQgetResult(pg);
    if (result == nullptr) {  // the end of an answer; its sync comes next
      if (s.stage.is_alone()) {
        finish_front();
      } else if (++ends == 2) {
        break;
      }
      continue;
    }
    ends = 0;
    // libpq reports the end of the connection as an error without an SQLSTATE.
    if (PQstatus(pg) != CONNECTION_OK && sqlstate_of(result).empty() &&
        PQresultStatus(result) == PGRES_FATAL_ERROR) {
      PQclear(result);
      break;
    }
    take(result);
  }
  return s.sent.size() < before;
}

void session::take(void* given) {
  state& s = *state_;
  owned_result result(static_cast<PGresult*>(given));
  s.on->note_result();
  sent_request& front = s.sent.front();
  switch (PQresultStatus(result.get())) {
    case PGRES_PIPELINE_SYNC:
      TROUPE_INVARIANT(s.syncs == s.sent.size(), "S2");
      --s.syncs;
      return finish_front();
    case PGRES_PIPELINE_ABORTED:
      return;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
      if (begin_copy(front, result.get())) {
        const std::unique_ptr<request> begun = std::move(front.query);
        const bool is_abandoned = begun->asker.abandoned();
        begun->answer_with(answer(result.release()));
        if (is_abandoned) copy_give_up();  // the COPY may end in it, and `front` with it
        return;
      }
      // Only a script can begin this COPY, and nothing would end it: close the connection.
      ::shutdown(PQsocket(s.on->pg), SHUT_RDWR);
      return;
    case PGRES_FATAL_ERROR:
      front.rows.clear();
      if (!front.refuse(is_fatal(result.get()))) return;
      front.result = std::move(result);
      return;
    case PGRES_SINGLE_TUPLE:
      return take_row(result.get());
    default:
      front.answered = true;
      ++front.answers;
      take_command(result.get());
      if (front.failed()) return;
      if (front.answers > 1) front.changed_before += answer(front.result.release()).changed_rows();
      front.result = std::move(result);
  }
}

namespace {

// The effect is unknown until the statement has ended.
std::exception_ptr too_large(const row_limits& wants) {
  const std::string text =
      wants.only_one
          ? "troupe: query_one: the statement gives several rows; add LIMIT 1, or use query"
          : "troupe: postgres: the answer has more than " + std::to_string(wants.rows) +
                " rows, or " + std::to_string(wants.bytes) +
                " bytes; limit the statement, or raise rows_max or bytes_max";
  return std::make_exception_ptr(database::error(failure::too_many_rows, 0, text,
                                                 database::rule::other, database::effect::unknown));
}

}  // namespace

// The first row past a limit marks the statement as unwanted: cancel_front() then ends it.
void session::take_row(void* result) {
  sent_request& front = state_->sent.front();
  if (!front.asks_for.empty()) {
    const auto* const row = static_cast<const PGresult*>(result);
    const auto number = [&](int column) {
      return static_cast<std::uint32_t>(std::strtoul(PQgetvalue(row, 0, column), nullptr, 10));
    };
    front.forms.emplace_back(number(0), number(1));
    return;
  }
  if (front.query == nullptr || front.past_limit != nullptr || front.failed()) return;
  const row_limits& wants = front.query->wants;
  if (wants.rows == 0) return;
  if (front.rows.rows() < wants.rows && front.rows.bytes() < wants.bytes)
    return front.rows.add(result);
  front.rows.clear();
  front.past_limit = too_large(wants);
  front.unwanted = true;
}

// Some commands drop all prepared statements, or store the changes that a script has made so far.
void session::take_command(void* result) {
  state& s = *state_;
  const std::string_view tag = PQcmdStatus(static_cast<PGresult*>(result));
  if (tag == "DISCARD ALL" || tag == "DEALLOCATE ALL") s.statements.clear();
  const bool commits = tag == "COMMIT" || tag == "PREPARE TRANSACTION";
  // Within a scope a BEGIN follows a ROLLBACK, whose tag is the same as after ROLLBACK TO.
  const bool begins = tag == "BEGIN" || tag == "START TRANSACTION";
  if (!commits && !begins) return;
  sent_request& front = s.sent.front();
  front.has_committed = front.has_committed || commits;
  // The script hid the command from why_script_refused(): its later changes would be stored alone.
  if (front.query != nullptr && front.query->kind == request_kind::script &&
      front.query->scope != 0)
    s.scopes.end();
}

// Null if the request has succeeded. The effect is unknown for a script that failed after a COMMIT
// of its own, for a procedure, and for an answer that is too large although it was complete.
std::exception_ptr session::failure_of(const sent_request& done) const {
  if (!done.failed()) return done.past_limit;
  const bool in_parts = done.has_committed || done.query->may_be_stored_in_parts();
  const auto effect = in_parts ? database::effect::unknown : database::effect::none;
  if (done.past_limit != nullptr && sqlstate_of(done.refused()) == "57014") {
    try {
      std::rethrow_exception(done.past_limit);
    } catch (const database::error& failed) {
      return std::make_exception_ptr(
          database::error(failed.kind(), 0, failed.what(), failed.broken_rule(), effect));
    }
  }
  return std::make_exception_ptr(refusal(done.result.get(), place_of(done), effect));
}

// Whether the transaction of the open scope has ended, without an end by the session itself.
bool session::has_transaction_ended() noexcept {
  return !state_->scopes.note(state_->transaction());
}

void session::finish_front() {
  state& s = *state_;
  sent_request done = std::move(s.sent.front());
  s.sent.pop_front();
  const bool left_open =
      s.stage.is_alone() && done.query != nullptr &&
      PQtransactionStatus(s.on->pg) != PQTRANS_IDLE &&
      (done.query->scope == 0 || PQtransactionStatus(s.on->pg) == PQTRANS_ACTIVE);
  if (s.stage.is_alone()) {
    s.stage.end_alone();
    PQenterPipelineMode(s.on->pg);
  }
  if (!done.prepares.empty()) return finish_preparing(done);
  if (!done.asks_for.empty()) return finish_asking(done);
  if (s.copy.is == copying::ends) return finish_copy(done);
  if (left_open) s.waiting.push_front(std::make_unique<request>(request_kind::plain, "ROLLBACK"));
  const bool has_ended = has_transaction_ended();
  if (done.query == nullptr) return;
  database::statement_ends("postgres", done.query->text, done.began_ns, done.failed());
  if (done.failed() && tries_again(done)) return s.waiting.push_front(std::move(done.query));
  if (const std::exception_ptr failed = failure_of(done)) return done.query->fail(failed);
  if (has_ended && done.query->scope != 0)
    return done.query->fail(
        std::make_exception_ptr(database::transaction_scopes::refusal(database::effect::unknown)));
  if (left_open)
    return done.query->fail(std::make_exception_ptr(database::error(
        failure::statement, 0,
        "troupe: postgres: the script began a transaction, which was rolled back; use "
        "in_transaction",
        database::rule::other,
        done.has_committed ? database::effect::unknown : database::effect::none)));
  answer given(done.result.release(), std::move(done.rows));
  given.changed_before = done.changed_before;
  if (done.query->kind == request_kind::begin) given.scope = s.scopes.current();
  done.query->answer_with(std::move(given));
}

// The description has the types of the parameters and of the columns.
void session::finish_preparing(const sent_request& done) {
  state& s = *state_;
  prepared* const statement = s.statements.find(done.prepares);
  if (statement == nullptr) return;
  const PGresult* const told = done.result.get();
  if (!done.failed()) {
    for (int i = 0; i < PQnparams(told); ++i) statement->takes.push_back(PQparamtype(told, i));
    // A table may be altered before the next use of a statement that the server does not keep.
    statement->binary = !statement->name.empty();
    for (int i = 0; i < PQnfields(told); ++i)
      statement->binary = statement->binary && is_known(type{PQftype(told, i)});
    std::vector<std::uint32_t> unknown;
    std::ranges::copy_if(statement->takes, std::back_inserter(unknown), [&](std::uint32_t type) {
      return type >= first_own_type && !s.forms.contains(type);
    });
    return unknown.empty() ? set_forms(*statement) : ask_for_forms(done.prepares, unknown);
  }
  s.statements.erase(done.prepares);
  if (was_hit(done)) return;  // it is prepared again
  const auto wants = std::ranges::find_if(s.waiting, [&](const auto& waiting) {
    return waiting->kind == request_kind::statement && waiting->text == done.prepares;
  });
  if (wants == s.waiting.end()) return;
  const std::unique_ptr<request> query = std::move(*wants);
  s.waiting.erase(wants);
  query->fail(std::make_exception_ptr(refusal(told)));
}

void session::set_forms(prepared& statement) {
  statement.forms = statement.takes;
  for (std::uint32_t& type : statement.forms) {
    const auto known = state_->forms.find(type);
    if (known != state_->forms.end()) type = known->second;
  }
  statement.ready = true;
}

void session::finish_asking(const sent_request& done) {
  state& s = *state_;
  prepared* const statement = s.statements.find(done.asks_for);
  if (statement == nullptr || statement->ready) return;
  for (const std::uint32_t type : statement->takes) s.forms.emplace(type, type);
  for (const auto& [own, below] : done.forms) s.forms[own] = below;
  set_forms(*statement);
}

// Whether a cancel that was meant for another statement may have ended this one.
bool session::was_hit(const sent_request& done) const {
  const state& s = *state_;
  return sqlstate_of(done.refused()) == "57014" &&
         (s.cancelling.travels() || s.cancels != done.cancels);
}

// Whether a table may have been altered since the server has named the types of the parameters.
bool session::has_other_types(const sent_request& done) {
  constexpr std::array<std::string_view, 6> states{"22P02", "22P03", "22003",
                                                   "42804", "42846", "42883"};
  if (done.took.empty() || std::ranges::find(states, sqlstate_of(done.refused())) == states.end())
    return false;
  done.query->refused_by = failure_of(done);
  done.query->refused_types = done.took;
  return true;
}

// Such a statement has done nothing, so that it may be sent again. Within a transaction it may not;
// then the next call of its text prepares it anew.
bool session::tries_again(const sent_request& done) {
  constexpr unsigned tries_max = 5;
  request& query = *done.query;
  if (query.kind != request_kind::statement || done.past_limit != nullptr) return false;
  const bool stale = is_stale(done.refused()), other_types = !stale && has_other_types(done);
  if (stale || other_types) forget(query.text, done.statement);
  if (!query.is_repeatable() || query.asker.abandoned() || query.tries == tries_max) return false;
  if (!stale && !other_types && !was_hit(done)) return false;
  ++query.tries;
  return true;
}

}  // namespace troupe::postgres
