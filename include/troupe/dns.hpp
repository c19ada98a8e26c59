// dns: addresses of hosts, and connections to hosts by name.
// This header includes the whole component troupe::dns.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/dns/connect.hpp"
#include "troupe/dns/resolver.hpp"
