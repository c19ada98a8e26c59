// The ends of a COPY and of a LISTEN that a program holds.
#include <memory>
#include <string>
#include <utility>

#include "postgres/session/refusal.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::postgres {

namespace parts {

open_copy::~open_copy() {
  if (on_ == nullptr) return;
  try {
    on_->session_ref.tell([](session& self) { self.copy_give_up(); });
  } catch (...) {
    // Without memory for a message the connection stays as it is, and its next call waits.
  }
}

namespace {

// `on_the_way` stays true when the wait is given up.
task<> put(std::shared_ptr<shared> on, std::string text, std::shared_ptr<bool> on_the_way) {
  promise<> asker;
  future<> later = asker.get_future();
  on->session_ref.tell([text = std::move(text), asker = std::move(asker)](session& self) mutable {
    self.copy_put(std::move(text), std::move(asker));
  });
  try {
    co_await std::move(later);
  } catch (const database::error&) {
    *on_the_way = false;
    throw;
  }
  *on_the_way = false;
}
task<> nothing() { co_return; }

// Gives up the COPY if its end is not awaited.
struct ending : open_copy {
  using open_copy::end;
  using open_copy::open_copy;
};

task<changes> end_of(std::optional<shared_mutex::guard> held, std::shared_ptr<shared> on,
                     std::string rest) {
  ending open(on, std::move(held));
  task<> puts = put(on, std::move(rest), std::make_shared<bool>(true));
  co_await std::move(puts);
  promise<answer> asker;
  future<answer> later = asker.get_future();
  on->session_ref.tell(
      [asker = std::move(asker)](session& self) mutable { self.copy_end(std::move(asker)); });
  const answer got = co_await std::move(later);
  static_cast<void>(open.end());
  co_return changes{got.changed_rows()};
}

task<std::optional<std::string>> get(std::shared_ptr<shared> on, channel<copied> from) {
  if (from.size() == 0) on->session_ref.tell([from](session& self) { self.copy_get(from); });
  auto waits = from.receive();
  std::optional<copied> got = co_await std::move(waits);
  if (got->failed != nullptr) std::rethrow_exception(got->failed);
  if (got->is_end) co_return std::nullopt;
  co_return std::move(got->text);
}

}  // namespace
}  // namespace parts

task<> copy_writer::write(std::string_view text) {
  constexpr std::size_t sent_bytes = 16 * 1024;
  if (on() == nullptr)
    throw database::error(
        database::failure::statement, 0,
        "troupe: postgres: write() was called after finish(); begin another COPY");
  check_whole();
  kept_ += text;
  if (kept_.size() < sent_bytes) return parts::nothing();
  is_on_the_way_ = std::make_shared<bool>(true);
  return parts::put(on(), std::exchange(kept_, {}), is_on_the_way_);
}
void copy_writer::check_whole() const {
  if (is_on_the_way_ == nullptr || !*is_on_the_way_) return;
  throw database::error(
      database::failure::statement, 0,
      "troupe: postgres: a write() of this COPY was given up or not awaited, and may "
      "have been sent or not; nothing of the COPY is stored, begin it anew");
}
task<changes> copy_writer::finish() {
  check_whole();
  auto [held, ended] = end();
  if (ended == nullptr)
    throw database::error(database::failure::statement, 0,
                          "troupe: postgres: finish() was called twice; call it once");
  return parts::end_of(std::move(held), std::move(ended), std::move(kept_));
}
task<std::optional<std::string>> copy_reader::next() { return parts::get(on(), pieces_); }

listener::~listener() {
  if (!on_) return;
  try {
    on_.tell([from = from_](session& self) { self.unlisten(from); });
  } catch (...) {
    // Without memory for a message the server continues to notify, and its notices are dropped.
  }
}

task<std::optional<notification>> listener::next() {
  const auto take = [](channel<notification> from) -> task<std::optional<notification>> {
    auto waits = from.receive();
    std::optional<notification> got = co_await std::move(waits);
    if (!got)
      throw lost_error("what was notified since then is not known; listen again", "08006",
                       database::effect::none);
    co_return got;
  };
  return take(from_);
}

}  // namespace troupe::postgres
