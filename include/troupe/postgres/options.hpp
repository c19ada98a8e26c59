// options: how a connection to a PostgreSQL server is used.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "troupe/base/time_span.hpp"

namespace troupe::postgres {

// A value that makes no sense is an option_error.
struct options {
  // How long it may take until there is a connection, over all addresses of all hosts; more than 0.
  // The target's own connect_timeout, in seconds, limits each address.
  time_span connect_timeout = std::chrono::seconds(10);
  // How long the server may send nothing while answers are due, except for a COPY. Then the
  // connection is given up: its calls fail with failure::lost, and the next call connects again.
  // Thus a server that has failed silently is noticed, and a statement that takes longer fails. 0:
  // no limit.
  time_span answer_timeout{};
  // How long the server may send nothing while it works for a caller that has given up, whose
  // statement it is asked to cancel. Then the connection is given up as by answer_timeout. A server
  // that has failed behind a proxy, which keeps the connection open, would otherwise hold back the
  // end of the program. After ten times as long it is given up whatever the server sends. 1 ms or
  // more.
  time_span cancel_timeout = std::chrono::seconds(10);
  // Statements that are sent and not yet answered; more of them wait in the program. 1 or more.
  std::size_t in_flight_max = 256;
  // Statements that the server keeps prepared for this connection, by their text; 1 or more.
  std::size_t statements_max = 128;
  // Whether statements are kept prepared by the server. `false` is for a pooler that gives each
  // transaction any of its connections to the server (PgBouncer with pool_mode = transaction): then
  // nothing of this connection is left in the server between two transactions, each statement is
  // parsed anew, and values arrive as texts.
  bool keep_prepared = true;
  // Rows of one answer; more are an error, and the statement is cancelled. An answer lies in memory
  // as a whole. 1 or more.
  std::size_t rows_max = 1'000'000;
  // Bytes of all rows of one answer, likewise; one row more than that may be in memory. A row that
  // has 16 MiB more than that, or as many reports without a result, end the connection: the call
  // fails with failure::lost. 1 or more.
  std::size_t bytes_max = 256 * 1024 * 1024;
};

// The changes of a statement.
struct changes {
  std::int64_t rows = 0;  // inserted, updated or deleted
};

// How far a transaction is kept from others that run at the same time.
enum class isolation : std::uint8_t {
  standard,         // the server's setting; by default each statement sees the committed data
  repeatable_read,  // all statements see the same data; a change of data that others changed is a
                    // conflict
  serializable,     // as if one ran after the other; otherwise it is a conflict
};

}  // namespace troupe::postgres
