// client_resources: the parts that all requests of a client share: its options, its kept
// connections and their limits, and the memory that it keeps for its servers. Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/accounts/account.hpp"
#include "http/client/kept_answer.hpp"
#include "http/client/proxy_table.hpp"
#include "http/client/wires/client_wire.hpp"
#include "http/client/wires/connection_slots.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/context.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::http {

class client_resources : public std::enable_shared_from_this<client_resources> {
 public:
  explicit client_resources(client_options chosen);
  client_resources(const client_resources&) = delete;
  client_resources& operator=(const client_resources&) = delete;
  // Makes the context when it is first needed, on a thread that may block: the system's store of
  // certificates is large. `for_streams`: for connections that may speak HTTP/2.
  task<tls_context> trust(bool for_streams, tasks::limits within);
  wire_ptr make_wire(tcp_stream plain) const {
    return std::make_unique<client_wire>(std::move(plain), limits);
  }
  wire_ptr make_wire(tls_stream secure) const {
    return std::make_unique<client_wire>(std::move(secure), limits);
  }

  const client_options options;
  base::ledger kept;  // before the members that hold accounts
  kept_holders holders;
  const parser_limits limits;
  const proxy_table proxies;
  connection_slots slots;
  wire_pool pool;

 private:
  std::optional<tls_context> known_trust(bool for_streams);

  std::mutex mutex_;
  std::optional<tls_context> trust_, streams_trust_;
};

}  // namespace troupe::http
