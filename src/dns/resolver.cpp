#include "troupe/dns/resolver.hpp"

#include <algorithm>

#include "dns/name.hpp"
#include "dns/query.hpp"
#include "io/sockets/sockets.hpp"
#include "troupe/io/ready.hpp"

namespace troupe {
namespace {

constexpr int tries_max = 10;

}  // namespace

resolver::resolver(resolver_options options) {
  if (options.try_for < std::chrono::milliseconds(1) || options.try_for > std::chrono::hours(1)) {
    throw option_error("troupe: resolver_options::try_for must be from 1 ms to 1 h");
  }
  if (options.tries < 1 || options.tries > tries_max)
    throw option_error("troupe: resolver_options::tries must be from 1 to 10");
  options_ = std::make_shared<const resolver_options>(std::move(options));
}

namespace dns {
namespace {

enum class waited : std::uint8_t { ready, timed_out, cancelled };

task<waited> wait_for(int fd, std::chrono::nanoseconds at_most, std::stop_token stop) {
  try {
    co_await readable(fd).timeout(at_most).stop(std::move(stop));
  } catch (const timed_out&) {
    co_return waited::timed_out;
  } catch (const cancelled&) {
    co_return waited::cancelled;
  }
  co_return waited::ready;
}

task<std::vector<endpoint>> look_up(std::shared_ptr<const resolver_options> given, std::string host,
                                    std::uint16_t port, tasks::limits within) {
  static const resolver_options defaults;
  const resolver_options& options = given == nullptr ? defaults : *given;
  std::optional<std::vector<endpoint>> known = known_address(host, port, options.family);
  if (known) co_return std::move(*known);
  if (&io::current_kernel() != &io::system_kernel()) {
    throw resolve_error(resolve_failure::in_simulation, host,
                        "there are no servers in the simulation");
  }
  query asked(options, host, port);
  if (!within.over() && !within.stop().stop_requested()) asked.start();
  while (!asked.done()) {
    const waited how =
        co_await wait_for(asked.fd(), std::min(asked.next(), within.left()), within.stop());
    if (how == waited::cancelled) throw cancelled("troupe: resolve \"" + host + "\": cancelled");
    if (how == waited::timed_out && within.over()) {
      throw timed_out("troupe: resolve \"" + host + "\": no answer came in time");
    }
    asked.process();
  }
  co_return asked.take();
}

}  // namespace

task<std::vector<endpoint>> lookup_call::start(tasks::limits within) && {
  return look_up(std::move(options_), std::move(host_), port_, std::move(within));
}

}  // namespace dns

}  // namespace troupe
