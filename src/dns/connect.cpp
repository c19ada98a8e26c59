#include "troupe/dns/connect.hpp"

#include <cstddef>
#include <exception>

#include "troupe/io/error.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/when.hpp"

namespace troupe::dns {
namespace {

// Alternates between IPv6 and IPv4, IPv6 first; keeps the order within each family.
std::vector<endpoint> by_turns(const std::vector<endpoint>& given) {
  std::vector<endpoint> sixes, fours, all;
  for (const endpoint& address : given) (address.is_v6() ? sixes : fours).push_back(address);
  for (std::size_t i = 0; i < sixes.size() || i < fours.size(); ++i) {
    if (i < sixes.size()) all.push_back(sixes[i]);
    if (i < fours.size()) all.push_back(fours[i]);
  }
  return all;
}

// Attempts to connect, which are branches of one task: they never run at the same time.
struct race {
  explicit race(std::size_t count) : begun(count), failed(count) {}
  std::vector<event> begun, failed;
  event never;
  std::size_t failures = 0;
  std::exception_ptr last;
  tcp_stream won;
};

task<> until_its_turn(const race& all, std::size_t which) {
  if (which == 0) co_return;
  co_await all.begun[which - 1].wait();
  try {
    co_await all.failed[which - 1].wait().timeout(attempt_delay);
  } catch (const timed_out&) {
  }
}

// Ends when this attempt has won, or when it is the last one to fail.
task<> attempt(race& all, std::size_t which, endpoint to, const tasks::limits& within) {
  co_await until_its_turn(all, which);
  all.begun[which].set();
  bool there = false;
  try {
    all.won = co_await tcp_stream::connect(to).timeout(within.left()).stop(within.stop());
    there = true;
  } catch (const io_error&) {
    all.last = std::current_exception();
  } catch (const timed_out&) {
    all.last = std::current_exception();
  }
  if (there) co_return;
  all.failed[which].set();
  if (++all.failures < all.failed.size()) co_await all.never.wait();
}

task<tcp_stream> connect_to_first(std::vector<endpoint> given, tasks::limits within) {
  if (given.empty())
    throw option_error("troupe: connect: the list of addresses is empty; give at least one");
  if (given.size() == 1)
    co_return co_await tcp_stream::connect(given.front())
        .timeout(within.left())
        .stop(within.stop());
  const std::vector<endpoint> ordered = by_turns(given);
  race all(ordered.size());
  std::vector<task<>> attempts;
  for (std::size_t i = 0; i < ordered.size(); ++i)
    attempts.push_back(attempt(all, i, ordered[i], within));
  auto first = when_any(std::move(attempts));
  co_await std::move(first);
  if (!all.won.is_open()) std::rethrow_exception(all.last);
  co_return std::move(all.won);
}

task<tcp_stream> connect_by_name(std::string host, std::uint16_t port, resolver by,
                                 tasks::limits within) {
  std::vector<endpoint> found =
      co_await by.resolve(std::move(host), port).timeout(within.left()).stop(within.stop());
  task<tcp_stream> connecting_to = connect_to_first(std::move(found), std::move(within));
  co_return co_await std::move(connecting_to);
}

}  // namespace

task<tcp_stream> connect_call::start(tasks::limits within) && {
  if (!host_.empty())
    return connect_by_name(std::move(host_), port_, std::move(by_), std::move(within));
  return connect_to_first(std::move(to_), std::move(within));
}

}  // namespace troupe::dns
