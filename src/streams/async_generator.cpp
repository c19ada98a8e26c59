#include "troupe/streams/async_generator.hpp"

namespace troupe::streams {

void throw_early_end(tasks::outcome how) {
  if (how == tasks::outcome::timed_out)
    throw timed_out("troupe: next: the next value of the stream did not come in time");
  throw cancelled("troupe: next: the wait for the next value of the stream was cancelled");
}

}  // namespace troupe::streams
