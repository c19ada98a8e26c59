// session: COPY, and the server's notifications.
#include <algorithm>
#include <cstring>
#include <utility>

#include "postgres/session/refusal.hpp"
#include "postgres/session/session_state.hpp"

namespace troupe::postgres {
namespace {

constexpr std::size_t given_bytes = 64 * 1024;

std::exception_ptr not_open() {
  return std::make_exception_ptr(database::error(
      database::failure::statement, 0, "troupe: postgres: this COPY has ended; begin another"));
}

void give_end(const channel<parts::copied>& reader, std::exception_ptr failed) {
  static_cast<void>(reader.try_send(parts::copied{{}, true, std::move(failed)}));
}

}  // namespace

// Returns whether the request has asked for that.
bool session::begin_copy(sent_request& front, void* result) {
  state& s = *state_;
  const bool copies_in = PQresultStatus(static_cast<PGresult*>(result)) == PGRES_COPY_IN;
  const request_kind wanted = copies_in ? request_kind::copy_in : request_kind::copy_out;
  if (front.query == nullptr || front.query->kind != wanted) return false;
  s.copy.is = copies_in ? copying::in : copying::out;
  s.copy.number = front.query->copy_number;
  return true;
}

void session::copy_put(std::string text, promise<> asker) {
  state& s = *state_;
  if (s.copy.is != copying::in)
    return asker.set_exception(s.copy.failed != nullptr ? s.copy.failed : not_open());
  s.copy.text = std::move(text);
  s.copy.put = std::move(asker);
  go_on();
}

// A reader asks when its channel is empty, so that there is room. One whose waits were given up has
// asked several times, and gets one answer.
void session::copy_get(const channel<parts::copied>& reader) {
  if (reader.size() != 0) return;
  state& s = *state_;
  if (s.copy.is == copying::no) return give_end(reader, not_open());
  if (s.copy.is == copying::ended) return give_end(reader, s.copy.failed);
  s.copy.get = reader;
  go_on();
}

void session::copy_end(promise<answer> asker) {
  state& s = *state_;
  if (s.copy.is != copying::in)
    return asker.set_exception(s.copy.failed != nullptr ? s.copy.failed : not_open());
  s.copy.end = std::move(asker);
  s.copy.is = copying::ends;
  PQputCopyEnd(s.on->pg, nullptr);
  go_on();
}

void session::copy_give_up() {
  state& s = *state_;
  if (s.copy.is == copying::in) {
    s.copy.is = copying::ends;
    PQputCopyEnd(s.on->pg, "the program gave up");
    go_on();
  } else if (s.copy.is == copying::out) {
    s.sent.front().unwanted = true;
    go_on();
  }
}

void session::move_copy() {
  state& s = *state_;
  if (s.on == nullptr) return;
  if (s.copy.is == copying::in && s.copy.put) put_copied();
  if (s.copy.is == copying::out && !s.is_paused()) get_copied();
}

// libpq would keep all that the server does not take yet.
void session::put_copied() {
  state& s = *state_;
  if (PQflush(s.on->pg) == 1) return;
  const std::string text = std::exchange(s.copy.text, {});
  promise<> asker = std::move(*s.copy.put);
  s.copy.put.reset();
  std::size_t at = 0;
  bool well = true;
  constexpr std::size_t part = 1 << 30;
  for (; well && at < text.size(); at += part) {
    const std::size_t bytes = std::min(part, text.size() - at);
    well = PQputCopyData(s.on->pg, text.data() + at, static_cast<int>(bytes)) == 1;
  }
  if (well) return asker.set_value();
  asker.set_exception(std::make_exception_ptr(
      lost_error(PQerrorMessage(s.on->pg), "08006", database::effect::none)));
}

void session::get_copied() {
  state& s = *state_;
  int got = 0;
  while (s.copy.text.size() < given_bytes) {
    char* row = nullptr;
    got = PQgetCopyData(s.on->pg, &row, 1);
    if (got <= 0) break;
    s.on->note_result();
    if (!s.sent.front().unwanted) s.copy.text.append(row, static_cast<std::size_t>(got));
    PQfreemem(row);
  }
  if (got < 0) s.copy.is = copying::ends;  // how it ended comes with the result
  if (s.copy.text.empty() || !s.copy.get) return;
  const channel<parts::copied> reader = *std::exchange(s.copy.get, {});
  static_cast<void>(reader.try_send(parts::copied{std::exchange(s.copy.text, {}), false, nullptr}));
}

void session::finish_copy(sent_request& done) {
  state& s = *state_;
  s.copy.is = copying::ended;
  if (s.copy.failed == nullptr && done.failed())
    s.copy.failed = std::make_exception_ptr(refusal(done.result.get()));
  if (auto asker = std::exchange(s.copy.put, {}))
    asker->set_exception(s.copy.failed != nullptr ? s.copy.failed : not_open());
  if (const auto reader = std::exchange(s.copy.get, {})) give_end(*reader, s.copy.failed);
  if (auto asker = std::exchange(s.copy.end, {}))
    s.copy.failed != nullptr ? asker->set_exception(s.copy.failed)
                             : asker->set_value(answer(done.result.release()));
}

void session::listen(const std::string& name, const channel<notification>& reader,
                     std::unique_ptr<request> query) {
  state_->listeners.push_back({name, reader});
  submit(std::move(query));
}

void session::unlisten(const channel<notification>& reader) {
  state& s = *state_;
  std::string name;
  std::erase_if(s.listeners, [&](const listening& listener) {
    if (listener.reader != reader) return false;
    name = listener.name;
    return true;
  });
  const bool last =
      !name.empty() && std::ranges::none_of(s.listeners, [&](const listening& listener) {
        return listener.name == name;
      });
  if (!last || s.on == nullptr) return;
  std::string text = "UNLISTEN \"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  auto query = std::make_unique<request>(request_kind::plain, text + '"');
  query->epoch = s.epoch;  // a new connection does not listen
  s.waiting.push_back(std::move(query));
  go_on();
}

void session::take_notifications() {
  state& s = *state_;
  const auto frees = [](PGnotify* notice) { PQfreemem(notice); };
  for (;;) {
    const std::unique_ptr<PGnotify, decltype(frees)> got(PQnotifies(s.on->pg), frees);
    if (got == nullptr) return;
    // Type, length, process, and two texts with their ends.
    s.on->note_message(11 + std::strlen(got->relname) + std::strlen(got->extra));
    for (listening& listener : s.listeners) {
      if (listener.name != got->relname) continue;
      const bool kept =
          listener.reader.try_send(notification{listener.name, got->extra, listener.missed});
      listener.missed = kept ? 0 : listener.missed + 1;
    }
  }
}

}  // namespace troupe::postgres
