// cron: cron schedules, and calls at their times.
// This header includes the whole component troupe::cron.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/cron/run_by.hpp"
#include "troupe/cron/schedule.hpp"
