// observe_page: the page that shows a running program, and its metrics for Prometheus.
// This header includes the whole component troupe::observe_page.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/observe_page/observe_page.hpp"
