// session: the requests to the server.
#include <sys/socket.h>

#include <utility>

#include "base/invariant.hpp"
#include "postgres/session/first_word.hpp"
#include "postgres/session/refusal.hpp"
#include "postgres/session/session_state.hpp"
#include "troupe/database/error.hpp"

namespace troupe::postgres {

using database::effect;
using database::failure;

void session::send_waiting() {
  state& s = *state_;
  deallocate();
  while (s.on != nullptr && !s.stage.is_alone() && !s.waiting.empty() &&
         s.sent.size() < s.chosen.in_flight_max) {
    request& next = *s.waiting.front();
    std::exception_ptr refused;
    if ((next.epoch != 0 && next.epoch != s.epoch) ||
        (next.scope != 0 && next.scope == s.lost_scope)) {
      refused = std::make_exception_ptr(
          lost_error("its transaction was rolled back", "08006", effect::none));
    } else if (!next.asker.abandoned()) {
      try {
        if (next.scope != 0) s.scopes.check(next.scope, s.transaction());
        if (send(next)) continue;
        return;
      } catch (...) {
        refused = std::current_exception();
      }
    }
    const std::unique_ptr<request> gone = std::move(s.waiting.front());
    s.waiting.pop_front();
    refused != nullptr ? gone->fail(refused) : gone->drop();
  }
}

// Returns whether the first of those that wait was sent. Throws error if it cannot be.
bool session::send(request& query) {
  state& s = *state_;
  TROUPE_INVARIANT(&query == s.waiting.front().get(), "S3");
  if (!query.is_repeatable() && s.may_be_hit()) return false;
  switch (query.kind) {
    case request_kind::statement:
      return send_prepared(query);
    case request_kind::script:
    case request_kind::copy_in:
    case request_kind::copy_out:
      check_script(query);
      if (!s.sent.empty()) return false;
      start_alone();
      return true;
    case request_kind::begin:
    case request_kind::commit:
    case request_kind::plain:
      break;
  }
  const request_kind kind = query.kind;
  const char* const text = query.text.c_str();
  end_sending(PQsendQueryParams(s.on->pg, text, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1, {});
  if (kind == request_kind::begin) s.scopes.open();
  if (kind == request_kind::commit) s.scopes.commit();
  return true;
}

void session::check_script(const request& query) const {
  if (query.scope == 0) return;
  const char* const standard = PQparameterStatus(state_->on->pg, "standard_conforming_strings");
  const bool backslashes = standard != nullptr && std::string_view(standard) == "off";
  if (const char* const why = why_script_refused(query.text, backslashes))
    throw database::error(failure::statement, 0, "troupe: postgres: " + std::string(why));
}

bool session::send_prepared(request& query) {
  state& s = *state_;
  const prepared* const known = s.statements.use(query.text);
  if (known == nullptr) {
    prepare(query.text);
    return false;
  }
  if (!known->ready) return false;
  // The server has named its types again, and they are those that the parameters did not fit.
  if (query.refused_by != nullptr && known->takes == query.refused_types) {
    s.statements.find(query.text)->was_used = true;  // the next refusal is asked about again
    std::rethrow_exception(query.refused_by);
  }
  if (query.parameters() != known->takes.size())
    throw database::error(failure::statement, 0,
                          "troupe: postgres: the statement has " +
                              std::to_string(known->takes.size()) + " parameters, and was given " +
                              std::to_string(query.parameters()));
  bool well = false;
  try {
    well = send_rows(query, *known);
  } catch (const database::error&) {
    if (asks_for_types_again(query, *known)) return send_prepared(query);
    throw;
  }
  end_sending(well, {});
  sent_request& sent = s.sent.back();
  sent.statement = known->number;
  if (known->was_used && query.refused_by == nullptr) sent.took = known->takes;
  s.statements.find(sent.query->text)->was_used = true;
  return true;
}

// Called while an exception is handled: a parameter does not fit its type. A table may have been
// altered since the server named the type.
bool session::asks_for_types_again(request& query, const prepared& known) {
  if (!known.was_used || query.refused_by != nullptr) return false;
  query.refused_by = std::current_exception();
  query.refused_types = known.takes;
  forget(query.text, known.number);
  return true;
}

// With several rows of parameters all are looked at before one is sent: a sync behind a part of
// them would store that part.
bool session::send_rows(request& query, const prepared& known) {
  state& s = *state_;
  const std::size_t rows = query.rows();
  const auto bind = [&](std::size_t row) {
    s.values.begin(known.forms);
    query.bind(s.values, row);
  };
  for (std::size_t row = 0; rows > 1 && row < rows; ++row) bind(row);
  const auto send_one = [&] {
    if (known.name.empty())
      return PQsendQueryParams(s.on->pg, query.text.c_str(), s.values.count(), known.takes.data(),
                               s.values.values(), s.values.sizes(), s.values.formats(), 0);
    return PQsendQueryPrepared(s.on->pg, known.name.c_str(), s.values.count(), s.values.values(),
                               s.values.sizes(), s.values.formats(), known.binary ? 1 : 0);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    bind(row);
    if (send_one() == 1) continue;
    if (row > 0) ::shutdown(PQsocket(s.on->pg), SHUT_RDWR);  // the sent rows are not stored
    return false;
  }
  return true;
}

void check_many(std::size_t rows) {
  constexpr std::size_t rows_max = 65'536;
  if (rows > rows_max)
    throw database::error(failure::statement, 0,
                          "troupe: postgres: execute_many was given " + std::to_string(rows) +
                              " rows of parameters, and takes at most " + std::to_string(rows_max) +
                              "; use copy_in, or several calls");
}

// The server reports the types of the statement's parameters; the values are sent in these types.
void session::prepare(const std::string& text) {
  state& s = *state_;
  if (const char* const why = why_refused(text))
    throw database::error(failure::statement, 0, "troupe: postgres: " + std::string(why));
  if (s.statements.size() == s.chosen.statements_max) {
    const std::string oldest = *s.statements.oldest();
    forget(oldest, s.statements.find(oldest)->number);
  }
  prepared& statement = s.statements.emplace(text);
  statement.number = ++s.names;
  if (s.chosen.keep_prepared) statement.name = s.name_begin + std::to_string(statement.number);
  const bool well =
      PQsendPrepare(s.on->pg, statement.name.c_str(), text.c_str(), 0, nullptr) == 1 &&
      PQsendDescribePrepared(s.on->pg, statement.name.c_str()) == 1;
  if (!well) s.statements.erase(text);
  end_sending(well, text);
}

// A domain takes the values of the type below it.
void session::ask_for_forms(const std::string& text, const std::vector<std::uint32_t>& types) {
  state& s = *state_;
  std::string words =
      "WITH RECURSIVE below (own, type) AS (SELECT oid, oid FROM pg_catalog.pg_type WHERE oid IN "
      "(0";
  for (const std::uint32_t type : types) words += "," + std::to_string(type);
  words +=
      ") UNION ALL SELECT own, t.typbasetype FROM below JOIN pg_catalog.pg_type AS t ON t.oid = "
      "type WHERE t.typtype = 'd') SELECT own::pg_catalog.int8, type::pg_catalog.int8 FROM below "
      "JOIN pg_catalog.pg_type AS t ON t.oid = type WHERE t.typtype <> 'd'";
  if (PQsendQueryParams(s.on->pg, words.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) != 1 ||
      !s.add_sync())
    return;  // the connection has ended
  sent_request& sent = s.sent.emplace_back();
  sent.asks_for = text;
  sent.cancels = s.cancels;
}

// Unless it was prepared again since.
void session::forget(const std::string& text, std::uint64_t number) {
  state& s = *state_;
  const prepared* const known = s.statements.find(text);
  if (known == nullptr || known->number != number || !known->ready) return;
  if (!known->name.empty()) s.forgotten.push_back(known->name);
  s.statements.erase(text);
}

// Not within a transaction, which may have failed, and which this may fail.
void session::deallocate() {
  state& s = *state_;
  if (s.on == nullptr || s.stage.is_alone() || s.scopes.is_open() || s.forgotten.empty()) return;
  for (const std::string& name : std::exchange(s.forgotten, {})) {
    const std::string words = "DEALLOCATE " + name;
    if (PQsendQueryParams(s.on->pg, words.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) != 1 ||
        !s.add_sync())
      return;
    s.sent.emplace_back().cancels = s.cancels;
  }
}

// Each has a sync of its own: the server answers those before it whatever comes behind, and
// continues behind one that fails.
void session::end_sending(bool well, std::string prepares) {
  state& s = *state_;
  if (!well || !s.add_sync()) {
    const std::string reason = PQerrorMessage(s.on->pg);
    if (PQstatus(s.on->pg) != CONNECTION_OK) throw lost_error(reason, "08006", effect::none);
    throw database::error(failure::statement, 0,
                          "troupe: postgres: the statement cannot be sent: " + reason);
  }
  sent_request& sent = s.sent.emplace_back();
  sent.cancels = s.cancels;
  sent.prepares = std::move(prepares);
  TROUPE_INVARIANT(s.sent.size() == s.syncs, "S2");
  if (!sent.prepares.empty()) return;
  sent.query = std::move(s.waiting.front());
  s.waiting.pop_front();
  TROUPE_INVARIANT(sent.query->scope == 0 || sent.query->scope == s.scopes.current(), "S4");
}

// Several statements travel by the simple protocol, which is not for pipelines; a COPY would never
// end in a pipeline.
void session::start_alone() {
  state& s = *state_;
  PGconn* const pg = s.on->pg;
  if (PQexitPipelineMode(pg) == 0 || PQsendQuery(pg, s.waiting.front()->text.c_str()) == 0) {
    const std::string reason = PQerrorMessage(pg);
    PQenterPipelineMode(pg);
    throw lost_error(reason, "08006", effect::none);
  }
  s.stage.begin_alone();
  s.copy = {};
  s.sent.emplace_back().query = std::move(s.waiting.front());
  s.waiting.pop_front();
}

}  // namespace troupe::postgres
