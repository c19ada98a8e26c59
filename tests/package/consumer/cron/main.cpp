// A program of a user of the component cron: it prints 42, which is the seconds from one time of a
// schedule to the next.
#include <chrono>
#include <cstdio>

#include <troupe/cron/run_by.hpp>
#include <troupe/troupe.hpp>

int main() {
  const troupe::cron_schedule schedule("0,42 0 12 * * *", "Europe/Berlin");
  troupe::runtime rt({.policy = troupe::policy::simulated});
  std::stop_source stop;
  troupe::cron_schedule::time_point last;
  const auto note = [&](troupe::cron_schedule::time_point at) {
    if (at - last == std::chrono::seconds(42)) {
      std::printf("42\n");
      stop.request_stop();
    }
    last = at;
  };
  rt.spawn(troupe::run_by(schedule, note, stop.get_token()));
  rt.run();
}
