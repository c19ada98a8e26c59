// windows: a transport that holds senders back, so that a slow node does not fill another's memory,
// and loses nothing for lack of room. The protocol: docs/protocols/cluster_windows.md.
#pragma once

#include <memory>

#include "cluster/transport/transport.hpp"
#include "cluster/transport/window_options.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

// The same transport, but that send and request wait while the window of their subject is full, in
// the order in which they came. All nodes of a cluster use
// windows, or none does. An empty message is refused with usage_error: it is a mark of windows.
std::unique_ptr<transport> windowed(runtime& on, std::unique_ptr<transport> over,
                                    const window_options& chosen = {});

}  // namespace troupe::cluster
