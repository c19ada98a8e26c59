// nats: a client of NATS.
// This header includes the whole component troupe::nats.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/nats/connection.hpp"
#include "troupe/nats/error.hpp"
#include "troupe/nats/message.hpp"
#include "troupe/nats/options.hpp"
#include "troupe/nats/stored.hpp"
