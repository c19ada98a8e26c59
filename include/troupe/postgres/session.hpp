// session: one connection to a PostgreSQL server, and the statements that are under way on it.
// Programs use connection.hpp.
//
// The session is an actor: its turns alone call libpq. Statements are sent in a pipeline, each with
// a sync of its own, so that one that fails harms no other; their answers come in the order in
// which they were sent. While answers are due, a task waits until the socket can be read, and asks
// the session to read. A request that must have the connection to itself waits until the pipeline
// is empty.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/database/rows.hpp"
#include "troupe/database/transaction_state.hpp"
#include "troupe/postgres/answer.hpp"
#include "troupe/postgres/listener.hpp"
#include "troupe/postgres/options.hpp"
#include "troupe/task/future.hpp"

namespace troupe::postgres {

namespace parts {
struct copied;
}

// The purpose of a request.
enum class request_kind : std::uint8_t {
  statement,  // is prepared, and kept so
  begin,      // these three are not prepared
  commit,
  plain,
  script,  // these three have the connection to themselves
  copy_in,
  copy_out,
};

// The rows that a caller takes. Memory: an answer holds at most `bytes` of rows and one more row.
struct row_limits {
  std::size_t rows = 0;   // 0: rows are dropped
  std::size_t bytes = 0;  // of all values, with the lengths that belong to them
  bool only_one = false;  // several rows are the caller's mistake, and no limit
};

// One statement on its way to the server; its answer resolves the promise, once.
struct request {
  request() = default;
  request(request_kind does, std::string words) : text(std::move(words)), kind(does) {}
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  virtual ~request();
  // Whether the server may get it twice, if it has refused it the first time.
  bool is_repeatable() const noexcept { return kind == request_kind::statement && scope == 0; }
  // Whether a part of it may be stored although the rest failed.
  bool may_be_stored_in_parts() const;
  virtual std::size_t parameters() const noexcept { return 0; }
  // How often the statement runs, each time with the next row of parameters.
  virtual std::size_t rows() const noexcept { return 1; }
  virtual void bind(arguments&, std::size_t) const {}

  // A session resolves its promise from now on.
  void accept() noexcept;
  void answer_with(answer&& given);
  void fail(const std::exception_ptr& why);
  // Without a result: its caller gave up, or the session ends.
  void drop() noexcept;
  bool drop_if_abandoned() noexcept;

  std::string text;
  promise<answer> asker;
  // The connection on which it must run; 0: any.
  std::uint64_t epoch = 0;
  // The transaction scope of which it is a part; 0: none.
  std::uint64_t scope = 0;
  std::uint64_t copy_number = 0;  // of a COPY, for its opener; 0: none
  unsigned tries = 0;
  request_kind kind = request_kind::statement;
  bool has_caller = true;             // false: the session itself has sent it
  std::uint8_t lost_connections = 0;  // while it waited

 private:
  enum class stage : std::uint8_t { created, accepted, ended };
  stage stage_ = stage::created;

 public:
  // The rows of the answer that the caller asks for; past the limits the statement is cancelled.
  row_limits wants;
  // The refusal that is given if the parameters have these types still, once the server has named
  // them again.
  std::exception_ptr refused_by;
  std::vector<std::uint32_t> refused_types;

 private:
  void end() noexcept;
};

// A request with its parameters, kept until they are sent.
template <class... P>
struct request_with final : request {
  template <class... Given>
  explicit request_with(std::string words, Given&&... values)
      : request(request_kind::statement, std::move(words)),
        given(database::keep_parameter(std::forward<Given>(values))...) {}
  std::size_t parameters() const noexcept override { return sizeof...(P); }
  void bind(arguments& values, std::size_t) const override { bind_all(values, given); }
  template <class Row>
  static void bind_all(arguments& values, const Row& row) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (database::bind_value(values, static_cast<int>(I + 1), std::get<I>(row)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Row>>());
  }
  std::tuple<P...> given;
};

// One statement with several rows of parameters, in front of one sync: all or nothing.
template <class Row>
struct request_with_rows final : request {
  request_with_rows(std::string words, std::vector<Row> values)
      : request(request_kind::statement, std::move(words)), given(std::move(values)) {}
  std::size_t parameters() const noexcept override { return std::tuple_size_v<Row>; }
  std::size_t rows() const noexcept override { return given.size(); }
  void bind(arguments& values, std::size_t row) const override {
    request_with<>::bind_all(values, given[row]);
  }
  std::vector<Row> given;
};

// A request that keeps copies of its parameters.
template <class... Given>
std::unique_ptr<request> make_request(std::string_view text, Given&&... values) {
  using built = request_with<decltype(database::keep_parameter(std::forward<Given>(values)))...>;
  return std::make_unique<built>(std::string(text), std::forward<Given>(values)...);
}

// Throws error for more rows than one call takes.
void check_many(std::size_t rows);
template <class Row>
std::unique_ptr<request> make_request_of_many(std::string_view text, std::vector<Row> rows) {
  check_many(rows.size());
  auto kept = database::keep_rows(std::move(rows));
  using built = request_with_rows<typename decltype(kept)::value_type>;
  return std::make_unique<built>(std::string(text), std::move(kept));
}

struct wire;
struct sent_request;
struct prepared;

// Thread: its own turns.
class session {
 public:
  session(std::string target, const options& chosen);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  void submit(std::unique_ptr<request> query);
  // Callers have given up: their requests are not sent, or are interrupted. The COPY with this
  // number, if it has begun, is ended: its opener has given up in that moment.
  void drop_abandoned(std::uint64_t copy_number = 0);
  // Rolls the open transaction back, if any.
  void roll_back();

  // Sends the request and passes notifications to the channel, from the first on.
  void listen(const std::string& name, const channel<notification>& reader,
              std::unique_ptr<request> query);
  void unlisten(const channel<notification>& reader);

  // For the COPY in progress: its next part, its end, and its end without effect.
  void copy_put(std::string text, promise<> asker);
  void copy_get(const channel<parts::copied>& reader);
  void copy_end(promise<answer> asker);
  void copy_give_up();

  // For the tasks that wait for the socket: whether they are to go on.
  bool read_from(const wire& used_wire);
  bool hear_nothing(const wire& used_wire);
  bool flush(const wire& used_wire);
  // For the task that connects.
  void use(std::shared_ptr<wire> opened);
  void refuse_waiting(const std::exception_ptr& failed);
  // For the task that cancels: whether the statement to cancel is still the one that runs.
  bool wants_cancel(const wire& used_wire);
  void end_cancel(const wire& used_wire);

  const options& chosen() const noexcept;
  bool is_open() const noexcept;

 private:
  struct state;

  void go_on();
  void send_waiting();
  bool send(request& query);
  bool send_prepared(request& query);
  bool send_rows(request& query, const prepared& known);
  bool asks_for_types_again(request& query, const prepared& known);
  void check_script(const request& query) const;
  void prepare(const std::string& text);
  void forget(const std::string& text, std::uint64_t number);
  void deallocate();
  void end_sending(bool well, std::string prepares);
  void start_alone();
  bool begin_copy(sent_request& front, void* result);
  void move_copy();
  void put_copied();
  void get_copied();
  void finish_copy(sent_request& done);
  void take_notifications();
  bool take_answers();
  void take(void* result);
  void take_row(void* result);
  void take_command(void* result);
  void finish_front();
  std::exception_ptr failure_of(const sent_request& done) const;
  bool has_transaction_ended() noexcept;
  void finish_preparing(const sent_request& done);
  void ask_for_forms(const std::string& text, const std::vector<std::uint32_t>& types);
  void finish_asking(const sent_request& done);
  void set_forms(prepared& statement);
  bool was_hit(const sent_request& done) const;
  bool has_other_types(const sent_request& done);
  bool tries_again(const sent_request& done);
  void cancel_front();
  void note_unwanted();
  void fail_waiting(const std::string& reason, unsigned most);
  void lose(std::string reason = {});

  std::unique_ptr<state> state_;
};

}  // namespace troupe::postgres
