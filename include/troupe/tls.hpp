// tls: TLS streams.
// This header includes the whole component troupe::tls.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/tls/certificate.hpp"
#include "troupe/tls/context.hpp"
#include "troupe/tls/error.hpp"
#include "troupe/tls/stream.hpp"
