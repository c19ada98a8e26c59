// batch_writer: a batch as statements of one transaction: one for each table and kind of change,
// however many rows it has.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "troupe/durable/storage.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::durable {

class batch_writer {
 public:
  explicit batch_writer(postgres::transaction& transaction, bool in_cluster = false) noexcept
      : transaction_(transaction), in_cluster_(in_cluster) {}

  // The statements, in the order in which they are to be sent; `all` is not needed any more. In a
  // cluster another statement writes the number of the batch.
  std::vector<task<>> statements_of(const batch& all);

 private:
  template <class... P>
  void add(std::string_view text, P&&... parameters) {
    statements_.push_back(run(transaction_.execute(text, std::forward<P>(parameters)...)));
  }
  static task<> run(task<postgres::changes> statement);

  void add_inbox(const batch& all);
  void add_arrived(const batch& all);
  void add_states(const batch& all);
  void add_answers(const batch& all);
  void add_calls(const batch& all);
  void forget_answers(const batch& all);
  void add_dead(const batch& all);
  void add_reminders(const batch& all);
  void add_set_reminders(const batch& all);
  void add_fired_reminders(const batch& all);

  postgres::transaction& transaction_;
  const bool in_cluster_;
  std::vector<task<>> statements_;
};

}  // namespace troupe::durable
