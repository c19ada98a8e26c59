// How a client comes to a connection.
#include <exception>

#include "http/exchange.hpp"
#include "troupe/io/error.hpp"

namespace troupe::http {
namespace {

// One address after the other; each has its share of the time that is left.
task<tcp_stream> reach(const std::vector<endpoint>& found, const tasks::limits& within) {
  std::exception_ptr last;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::chrono::nanoseconds share = within.left();
    if (share != std::chrono::nanoseconds::max()) share /= static_cast<std::int64_t>(found.size() - i);
    try {
      co_return co_await tcp_stream::connect(found[i]).timeout(share).stop(within.stop());
    } catch (const io_error&) {
      last = std::current_exception();
    } catch (const timed_out&) {
      last = std::current_exception();
    }
    if (within.over()) break;
  }
  std::rethrow_exception(last);
}

task<wire_ptr> connect_within(client_core& core, const url& to, const tasks::limits& within) {
  const std::vector<endpoint> found =
      co_await core.options.resolver.resolve(to.host(), to.port()).timeout(within.left()).stop(within.stop());
  tcp_stream plain = co_await reach(found, within);
  if (!to.secure()) co_return core.make_wire(std::move(plain));
  const tls_context trust = co_await core.trust(within);
  tls_stream secure = tls_stream::client(trust, std::move(plain), to.host());
  co_await secure.handshake().timeout(within.left()).stop(within.stop());
  co_return core.make_wire(std::move(secure));
}

}  // namespace

task<wire_ptr> connect(client_core& core, const url& to, const tasks::limits& within) {
  const tasks::limits soon = within.within(core.options.connect_time);
  try {
    co_return co_await connect_within(core, to, soon);
  } catch (const timed_out&) {
    throw timed_out("troupe: http: no connection to " + to.origin() +
                    " in time: try again, or allow more (client_options::connect_time)");
  }
}

}  // namespace troupe::http
