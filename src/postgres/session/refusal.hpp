// refusal: the error for a result of libpq.
#pragma once

#include <libpq-fe.h>

#include <string>
#include <string_view>

#include "troupe/postgres/error.hpp"

namespace troupe::postgres {

std::string_view sqlstate_of(const PGresult* refused) noexcept;
// Whether the server ends the session with it: it does not run the statements sent behind this one.
bool is_fatal(const PGresult* refused) noexcept;
// Whether the server itself ends: the changes of this statement may be there after its restart.
bool is_panic(const PGresult* refused) noexcept;
// A statement that was prepared is not valid any more, for a table has changed.
bool is_stale(const PGresult* refused) noexcept;
// `done`: the effect, unless the server itself reports it as unknown.
error refusal(const PGresult* refused, std::string_view where = {},
              database::effect done = database::effect::none);
// Why no connection came about: the words of libpq, with PQERRORS_VERBOSE. A server that refuses
// the user or the database is `denied`, since no later try can do better.
error no_connection(std::string words);
// The connection ended before the answer. `reason` may be empty.
error lost_error(std::string_view reason, std::string_view sqlstate, database::effect done);

}  // namespace troupe::postgres
