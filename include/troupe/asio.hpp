// asio: operations of Asio awaited in tasks and handlers, and an executor over the pool.
// This header includes the whole component troupe::asio. It needs the headers of Asio, or of
// Boost.Asio where TROUPE_BOOST_ASIO is defined.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/asio/executor.hpp"
#include "troupe/asio/token.hpp"
#include "troupe/asio/wait.hpp"
