#include "postgres/session/refusal.hpp"

#include <array>
#include <utility>

namespace troupe::postgres {
namespace {

using database::effect;
using database::failure;
using database::rule;

std::string_view field_of(const PGresult* object, int code) noexcept {
  const char* const text = object == nullptr ? nullptr : PQresultErrorField(object, code);
  return text == nullptr ? std::string_view() : text;
}

// The first whose characters the state begins with.
constexpr std::array<std::pair<std::string_view, failure>, 24> kinds{{
    {"08P01", failure::broken},    {"08", failure::lost},          {"22", failure::conversion},
    {"23", failure::constraint},   {"25006", failure::read_only},  {"28", failure::denied},
    {"3D", failure::denied},       {"40001", failure::conflict},   {"40P01", failure::conflict},
    {"40003", failure::lost},      {"40002", failure::constraint}, {"42501", failure::denied},
    {"44", failure::constraint},   {"53300", failure::busy},       {"53", failure::full},
    {"55P03", failure::busy},      {"55006", failure::busy},       {"57014", failure::too_slow},
    {"57P", failure::lost},        {"58", failure::broken},        {"XX001", failure::corrupted},
    {"XX002", failure::corrupted}, {"XX", failure::broken},        {"", failure::statement},
}};

failure kind_of(std::string_view sqlstate) noexcept {
  if (sqlstate.empty()) return failure::broken;
  for (const auto& [begin, kind] : kinds) {
    if (sqlstate.starts_with(begin)) return kind;
  }
  return failure::statement;
}

rule rule_of(std::string_view sqlstate) noexcept {
  if (sqlstate == "23505") return rule::unique;
  if (sqlstate == "23502") return rule::not_null;
  if (sqlstate == "23503") return rule::foreign_key;
  if (sqlstate == "23514") return rule::check;
  return rule::other;
}

}  // namespace

std::string_view sqlstate_of(const PGresult* refused) noexcept {
  return field_of(refused, PG_DIAG_SQLSTATE);
}
bool is_fatal(const PGresult* refused) noexcept {
  const std::string_view severity = field_of(refused, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC";
}
bool is_panic(const PGresult* refused) noexcept {
  return field_of(refused, PG_DIAG_SEVERITY_NONLOCALIZED) == "PANIC";
}
bool is_stale(const PGresult* refused) noexcept {
  const std::string_view state = sqlstate_of(refused);
  return state == "26000" || (state == "0A000" && field_of(refused, PG_DIAG_SOURCE_FUNCTION) ==
                                                      "RevalidateCachedQuery");
}

error refusal(const PGresult* refused, std::string_view where, effect done) {
  const std::string_view state = sqlstate_of(refused);
  if (state == "40003" || state == "08007") done = effect::unknown;
  std::string_view message = field_of(refused, PG_DIAG_MESSAGE_PRIMARY);
  if (message.empty()) message = PQresultErrorMessage(refused);
  std::string text = "troupe: postgres: " + std::string(where) + std::string(message);
  if (!state.empty()) text += " (SQLSTATE " + std::string(state) + ")";
  const std::string_view detail = field_of(refused, PG_DIAG_MESSAGE_DETAIL);
  if (!detail.empty()) text += ": " + std::string(detail);
  const std::string_view hint = field_of(refused, PG_DIAG_MESSAGE_HINT);
  if (!hint.empty()) text += "; " + std::string(hint);
  if (state == "26000")
    text += "; behind a pooler that shares connections to the server, set keep_prepared to false";
  return error(kind_of(state), text,
               {std::string(state), std::string(detail),
                std::string(field_of(refused, PG_DIAG_CONSTRAINT_NAME))},
               rule_of(state), done);
}

namespace {

// "FATAL:  28P01: password authentication failed": takes the state out of the text. libpq reports
// it in no other way when a connection fails.
std::string take_state(std::string& words) {
  constexpr std::size_t state_bytes = 5;
  for (std::size_t at = words.find(":  "); at != std::string::npos;
       at = words.find(":  ", at + 1)) {
    const std::string state = words.substr(at + 3, state_bytes);
    const bool is_state =
        state.size() == state_bytes &&
        state.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
    if (!is_state || words.substr(at + 3 + state_bytes, 2) != ": ") continue;
    words.erase(at + 3, state_bytes + 2);
    return state;
  }
  return {};
}

// An error that a later try may mend stays for later.
failure kind_of_no_connection(std::string_view sqlstate) noexcept {
  if (sqlstate.empty()) return failure::unreachable;
  const failure kind = kind_of(sqlstate);
  return kind == failure::denied || kind == failure::busy ? kind : failure::unreachable;
}

}  // namespace

error no_connection(std::string words) {
  const std::string state = take_state(words);
  // "LOCATION:  auth_failed, auth.c:326", which is about the server's source
  while (words.ends_with('\n')) words.pop_back();
  if (const std::size_t last = words.rfind('\n'); !state.empty() && last != std::string::npos &&
                                                  words.find(", ", last) != std::string::npos &&
                                                  words.find(".c:", last) != std::string::npos)
    words.resize(last);
  std::string text = "troupe: postgres: no connection: " + words;
  if (!state.empty()) text += " (SQLSTATE " + state + ")";
  return error(kind_of_no_connection(state), text, {state, {}, {}});
}

error lost_error(std::string_view reason, std::string_view sqlstate, effect done) {
  std::string text = "troupe: postgres: the connection was lost; ";
  text += done == effect::none ? "the statement has done nothing" : "the statement may have run";
  if (!reason.empty()) text += ": " + std::string(reason);
  while (text.ends_with('\n')) text.pop_back();
  return error(failure::lost, text, {std::string(sqlstate), {}, {}}, rule::other, done);
}

}  // namespace troupe::postgres
