// session: what the server has answered.
#include <sys/socket.h>

#include <algorithm>

#include "postgres/refusal.hpp"
#include "postgres/session_state.hpp"
#include "postgres/values/types.hpp"
#include "troupe/database/error.hpp"

namespace troupe::postgres {

using database::failure;

namespace {

// Which row of parameters was refused, if there are several.
std::string place_of(const sent_request& done) {
  const std::size_t rows = done.what->rows();
  if (rows == 1) return {};
  return "row " + std::to_string(done.answers + 1) + " of " + std::to_string(rows) + ": ";
}

}  // namespace

// Takes what has arrived, without waiting. Returns whether a request has ended.
bool session::take_answers() {
  state& s = *state_;
  PGconn* const pg = s.on->pg;
  const std::size_t before = s.sent.size();
  int ends = 0;
  while (!s.sent.empty() && s.copy.is != copying::in && s.copy.is != copying::out &&
         PQisBusy(pg) == 0) {
    PGresult* const result = PQgetResult(pg);
    if (result == nullptr) {  // the end of an answer; its sync comes next
      if (s.alone) {
        finish_front();
      } else if (++ends == 2) {
        break;
      }
      continue;
    }
    ends = 0;
    // libpq's own word for the end of the connection.
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
  sent_request& front = s.sent.front();
  switch (PQresultStatus(result.get())) {
    case PGRES_PIPELINE_SYNC:
      return finish_front();
    case PGRES_PIPELINE_ABORTED:
      return;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
      if (begin_copy(front, result.get())) {
        if (front.what != nullptr) front.what->to.set_value(answer(result.release()));
        front.what.reset();
        return;
      }
      // It would never end here, and only a script can begin it.
      ::shutdown(PQsocket(s.on->pg), SHUT_RDWR);
      return;
    case PGRES_FATAL_ERROR:
      front.fatal = front.fatal || is_fatal(result.get());
      if (front.failed) return;
      front.failed = true;
      front.result = std::move(result);
      return;
    default:
      front.answered = true;
      ++front.answers;
      if (front.failed) return;
      if (front.answers > 1) front.changed_before += answer(front.result.release()).changed_rows();
      front.result = std::move(result);
  }
}

void session::finish_front() {
  state& s = *state_;
  sent_request done = std::move(s.sent.front());
  s.sent.pop_front();
  const bool left_open = s.alone && done.what != nullptr &&
                         PQtransactionStatus(s.on->pg) != PQTRANS_IDLE &&
                         (done.what->epoch == 0 || PQtransactionStatus(s.on->pg) == PQTRANS_ACTIVE);
  if (s.alone) {
    s.alone = false;
    PQenterPipelineMode(s.on->pg);
  }
  if (!done.prepares.empty()) return finish_preparing(done);
  if (s.copy.is == copying::ends) return finish_copy(done);
  if (left_open) s.waiting.push_front(std::make_unique<request>(request_kind::plain, "ROLLBACK"));
  if (done.what == nullptr) return;
  if (done.failed) {
    if (tries_again(done)) return s.waiting.push_front(std::move(done.what));
    return done.what->to.set_exception(
        std::make_exception_ptr(refusal(done.result.get(), place_of(done))));
  }
  if (left_open)
    return done.what->to.set_exception(std::make_exception_ptr(database::error(
        failure::statement, 0,
        "troupe: postgres: the script began a transaction, which was rolled back; use "
        "in_transaction")));
  answer given(done.result.release());
  given.changed_before = done.changed_before;
  if (done.what->kind == request_kind::begin) given.epoch = s.epoch;
  done.what->to.set_value(std::move(given));
}

// The description has the types of the parameters and of the columns.
void session::finish_preparing(const sent_request& done) {
  state& s = *state_;
  prepared* const made = s.statements.find(done.prepares);
  if (made == nullptr) return;
  const PGresult* const told = done.result.get();
  if (!done.failed) {
    made->ready = true;
    for (int i = 0; i < PQnparams(told); ++i) made->takes.push_back(PQparamtype(told, i));
    made->binary = true;
    for (int i = 0; i < PQnfields(told); ++i)
      made->binary = made->binary && is_known(type{PQftype(told, i)});
    return;
  }
  s.statements.erase(done.prepares);
  if (was_hit(done)) return;  // it is prepared again
  const auto wants = std::ranges::find_if(s.waiting, [&](const auto& one) {
    return one->kind == request_kind::statement && one->text == done.prepares;
  });
  if (wants == s.waiting.end()) return;
  const std::unique_ptr<request> what = std::move(*wants);
  s.waiting.erase(wants);
  what->to.set_exception(std::make_exception_ptr(refusal(told)));
}

// Whether a cancel that was meant for another statement may have ended this one.
bool session::was_hit(const sent_request& done) const {
  const state& s = *state_;
  return sqlstate_of(done.refused()) == "57014" && (s.cancel_travels || s.cancels != done.cancels);
}

// Such a statement has done nothing, so that it may be sent again.
bool session::tries_again(const sent_request& done) {
  constexpr unsigned tries_max = 5;
  request& what = *done.what;
  if (!what.is_repeatable() || what.to.abandoned() || what.tries == tries_max) return false;
  const bool stale = is_stale(done.refused());
  if (!stale && !was_hit(done)) return false;
  if (stale) forget(what.text);
  ++what.tries;
  return true;
}

}  // namespace troupe::postgres
