// copy: many rows at once, by COPY, as streams of text.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/postgres/options.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/sync/mutex.hpp"
#include "troupe/task/task.hpp"

namespace troupe::postgres {

namespace parts {
struct shared;
class calls;

// The next item for a reader of a COPY. It waits in the reader's channel, which takes it back from
// a wait that was given up.
struct copied {
  std::string text;
  bool is_end = false;
  std::exception_ptr failed;
};

// A COPY that is under way. It has the connection to itself.
class open_copy {
 public:
  open_copy(std::shared_ptr<shared> on, std::optional<shared_mutex::guard> held) noexcept
      : held_(std::move(held)), on_(std::move(on)) {}
  open_copy(open_copy&&) noexcept = default;
  open_copy& operator=(open_copy&&) = delete;
  ~open_copy();

 protected:
  // Ends it here: the rest of it is the caller's. Its second part is null at a second call.
  std::pair<std::optional<shared_mutex::guard>, std::shared_ptr<shared>> end() noexcept {
    return {std::move(held_), std::move(on_)};
  }
  const std::shared_ptr<shared>& on() const noexcept { return on_; }

 private:
  std::optional<shared_mutex::guard> held_;
  std::shared_ptr<shared> on_;
};

}  // namespace parts

// Sends the rows of a COPY … FROM STDIN, in the form that the statement names: one row a line, its
// columns apart by tabs, unless it names another form. finish() commits all written rows together;
// without it, none is stored. Other calls of the connection wait meanwhile.
//
// Thread: one handler or task at a time. Errors: in finish(), rows that the server refuses;
// failure::lost. A write() that is given up, by a limit or a stop, is the last one: whether it was
// sent is unknown, so that each later call fails, and nothing is stored. Lifetime: keeps the
// connection open.
//
// Example (declarations):
//     #include <troupe/postgres/connection.hpp>
//     troupe::task<> fill(troupe::postgres::connection db) {
//       auto rows = co_await db.copy_in("COPY items (name, pieces) FROM STDIN");
//       for (int i = 0; i < 100'000; ++i)
//         co_await rows.write("item " + std::to_string(i) + "\t5\n");
//       std::cout << (co_await rows.finish()).rows << " rows\n";
//     }
class copy_writer : parts::open_copy {
 public:
  using parts::open_copy::open_copy;
  // Any part of the whole. It is sent when there are 16 KiB; then this waits while the server does
  // not take more.
  task<> write(std::string_view text);
  task<changes> finish();

 private:
  void check_whole() const;

  std::string kept_;
  std::shared_ptr<bool> is_on_the_way_;  // a part that was not taken yet, or was given up
};

// The rows of a COPY … TO STDOUT, several at a time, in the form that the statement names. A
// stream, for `|`. Other calls of the connection wait until it is destroyed; if that happens early,
// the rest is cancelled.
//
// Thread: one handler or task at a time. Memory: about 64 KiB, or one row. Errors: a refusal of the
// server; failure::lost. Lifetime: keeps the connection open.
//
// Example (declarations):
//     #include <troupe/postgres/connection.hpp>
//     troupe::task<> show(troupe::postgres::connection db) {
//       auto rows = co_await db.copy_out("COPY items TO STDOUT (FORMAT csv)");
//       while (const auto some = co_await rows.next()) std::cout << *some;
//     }
class copy_reader : parts::open_copy {
 public:
  using value_type = std::string;
  using parts::open_copy::open_copy;
  // Whole rows, or nothing at the end. A wait that is given up loses none.
  task<std::optional<std::string>> next();

 private:
  channel<parts::copied> pieces_ = channel<parts::copied>::bounded(4);
};

}  // namespace troupe::postgres
