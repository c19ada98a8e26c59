#include "troupe/cron/error.hpp"

namespace troupe {

const char* name_of(cron_field field) noexcept {
  switch (field) {
    case cron_field::second:
      return "second";
    case cron_field::minute:
      return "minute";
    case cron_field::hour:
      return "hour";
    case cron_field::day_of_month:
      return "day of month";
    case cron_field::month:
      return "month";
    case cron_field::day_of_week:
      return "day of week";
    case cron_field::expression:
      return "expression";
    case cron_field::zone:
      return "zone";
  }
  return "unknown";
}

}  // namespace troupe
