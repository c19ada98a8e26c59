// durable: actors whose state and mail survive the program.
// This header includes the whole component troupe::durable.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/durable/calendar.hpp"
#include "troupe/durable/call.hpp"
#include "troupe/durable/codec.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/durable/turn.hpp"
