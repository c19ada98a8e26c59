// sqlite: a SQLite file, on a thread of its own.
// This header includes the whole component troupe::sqlite.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/sqlite/connection.hpp"
#include "troupe/sqlite/session.hpp"
