#include "troupe/postgres/pool.hpp"

#include "kit/actors/pool_numbers.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::postgres {
namespace {

void check(const pool_limits& limits) {
  if (limits.wait_max.count() <= 0)
    throw option_error("troupe: postgres: wait_max must be more than 0");
  if (limits.check_timeout.count() <= 0)
    throw option_error("troupe: postgres: check_timeout must be more than 0");
  if (limits.name.empty()) throw option_error("troupe: postgres: the name of a pool is empty");
}

// A statement without words, which the server answers at once.
task<bool> answers(connection& checked, time_span at_most) {
  const auto asks = [&] { return checked.run_script(""); };
  auto limited = with_deadline(at_most, asks);
  co_await std::move(limited);
  co_return true;
}

}  // namespace

pool::pool(runtime& on, std::string target, const pool_limits& limits, const options& chosen) {
  check(limits);
  // Throws for options that make no sense.
  static_cast<void>(connection(on, target, chosen));
  const auto make = [target = std::move(target), chosen] { return connect(target, chosen); };
  const auto checks = [at_most = limits.check_timeout](connection& checked) {
    return answers(checked, at_most);
  };
  state_ = std::make_shared<shared>(
      shared{troupe::pool<connection>(static_cast<const pool_options&>(limits), make, checks),
             limits.wait_max, chosen});
  const auto reads = [all = state_.get()] { return all->lends.counts(); };
  state_->shown = kit::show_pool(limits.name, reads);
}

task<pool::lease> pool::borrow_from(std::shared_ptr<shared> from) {
  try {
    auto waits = from->lends.borrow().timeout(from->wait_max);
    co_return co_await std::move(waits);
  } catch (const timed_out&) {
    if (this_call::remaining().count() <= 0) throw;  // it is the caller's own time that is over
  }
  throw database::error(
      database::failure::busy, 0,
      "troupe: postgres: no connection became free within " +
          std::to_string(std::chrono::ceil<std::chrono::milliseconds>(from->wait_max).count()) +
          " ms; raise the pool's max or wait_max");
}

task<> pool::run_script(std::string_view text) const {
  return run(state_, {}, std::make_unique<request>(request_kind::script, std::string(text)),
             [](answer&) {});
}

}  // namespace troupe::postgres
