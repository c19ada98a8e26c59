// nats_transport: bytes from node to node through NATS servers.
#pragma once

#include <memory>
#include <string>

#include "cluster/transport/transport.hpp"
#include "troupe/nats/options.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

// Connects at once; calls wait until it is connected, and fail with unreachable for good if no
// server takes us at first. A connection that is lost later is made again as often as needed:
// `reconnect_rounds`, `request_timeout` and `send_trace` of the options are not looked at, and
// `ping_interval` is at most 2 seconds.
//
// Subjects are NATS subjects: tokens between dots, and `*` and `>` for subscribers. Where several
// servers make a cluster, take() is done when our own server has the subscription; it reaches the
// other servers a moment later. Errors: option_error.
std::unique_ptr<transport> nats_transport(runtime& on, const std::string& servers,
                                          const nats::options& chosen = {});

}  // namespace troupe::cluster
