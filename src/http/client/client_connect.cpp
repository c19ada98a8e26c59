// How a client comes to a connection.
#include "http/client/exchange.hpp"
#include "troupe/dns/connect.hpp"

namespace troupe::http {
namespace {

task<wire_ptr> connect_within(client_core& core, const url& to, const tasks::limits& within) {
  tcp_stream plain = co_await troupe::connect(to.host(), to.port(), core.options.resolver)
                         .timeout(within.left())
                         .stop(within.stop());
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
