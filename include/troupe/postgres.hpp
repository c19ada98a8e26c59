// postgres: connections to a PostgreSQL server, and pools of them.
// This header includes the whole component troupe::postgres.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/postgres/answer.hpp"
#include "troupe/postgres/connection.hpp"
#include "troupe/postgres/copy.hpp"
#include "troupe/postgres/error.hpp"
#include "troupe/postgres/listener.hpp"
#include "troupe/postgres/options.hpp"
#include "troupe/postgres/pool.hpp"
#include "troupe/postgres/session.hpp"
