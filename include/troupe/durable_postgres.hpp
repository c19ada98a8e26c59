// durable_postgres: durable actors in a PostgreSQL database.
// This header includes the whole component troupe::durable_postgres.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/durable_postgres/postgres_storage.hpp"
