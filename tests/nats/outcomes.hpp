// What the calls of a connection come to, as texts.
#pragma once

#include <string>
#include <utility>

#include "troupe/nats/connection.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {

// How a call has ended: "ok", the name of a failure, or of another error.
template <class T>
task<std::string> outcome_of(task<T> call) {
  try {
    static_cast<void>(co_await std::move(call));
  } catch (const nats::error& failed) {
    co_return std::string(nats::name_of(failed.kind())) + (failed.may_have_run() ? " (sent)" : "");
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  }
  co_return "ok";
}
inline task<std::string> outcome_of(task<> call) {
  const auto with_result = [](task<> of) -> task<int> {
    co_await std::move(of);
    co_return 0;
  };
  return outcome_of(with_result(std::move(call)));
}
// The payload of the next message; "end" at the end, or how it failed.
inline task<std::string> next_of(nats::subscription& from) {
  try {
    const auto got = co_await from.next();
    co_return got ? got->payload : "end";
  } catch (const nats::error& failed) {
    co_return nats::name_of(failed.kind());
  }
}

}  // namespace troupe::test
