// cron_schedule: times that an expression of cron names, in a time zone.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "troupe/base/time_span.hpp"
#include "troupe/cron/error.hpp"

namespace troupe {

// The times that an expression names, by the clocks of a time zone. It never changes; copies share
// it.
//
// The expression has five fields, or six with the seconds in front:
//     second        0-59       (0 if there are five fields)
//     minute        0-59
//     hour          0-23
//     day of month  1-31
//     month         1-12 or JAN-DEC
//     day of week   0-7 or SUN-SAT; 0 and 7 are Sunday
// A field is `*`, a number or name, a range `1-5`, any of them with a step (`*/15`, `8-18/2`, and
// `5/10` for 5-59/10), or a list of these with commas. Names are the first three letters in either
// case. FRI-SUN is also a range. If neither day field begins with `*`, a day that fits one of them
// is enough; otherwise it must fit both. For whole expressions there are @yearly (@annually),
// @monthly, @weekly, @daily (@midnight) and @hourly.
//
// When clocks change:
//     hour field begins with `*`   the schedule follows time as it passes: local times that are
//                                  skipped do not happen, those that come twice happen twice
//     otherwise                    it follows the day: a skipped time happens once, at the moment
//                                  of the change; a time that comes twice happens once, at the
//                                  first time
//
// Thread: any. Cost: making one 0.7 us and, for the first of a zone, reading its file; next() 50 to
// 100 ns, but 15 us if the next time is four years away. Errors: cron_error, for an expression that
// no day fits as well, such as the 30th of February. Limits: the zone files of the system have the
// changes of clocks up to the year 2037; after it their last rule holds without changes.
//
// Example:
//     const troupe::cron_schedule mornings("30 8 * * MON-FRI", "Europe/Berlin");
//     std::chrono::system_clock::time_point at = std::chrono::system_clock::now();
//     for (int i = 0; i < 3; ++i) {
//       at = mornings.next(at);
//       std::cout << std::chrono::system_clock::to_time_t(at) << '\n';
//     }
class cron_schedule {
 public:
  using time_point = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

  // `zone` is a name of the IANA database, as "Europe/Berlin"; "UTC", which needs no zone files; or
  // "local", the zone of the machine.
  explicit cron_schedule(std::string_view expression, std::string_view zone = "UTC");

  // The first time of the schedule after the given one.
  time_point next(wall_time after) const;

  const std::string& expression() const noexcept;
  // Its full name, even for "local".
  const std::string& zone() const noexcept;

 private:
  struct state;
  std::shared_ptr<const state> state_;
};

}  // namespace troupe
