// windows: a transport that holds senders back, so that a slow node does not fill another's memory,
// and loses nothing for lack of room. The protocol: docs/protocols/cluster_windows.md.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cluster/transport/transport.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

struct window_options {
  window_options() noexcept {}
  // How much of what this node has sent to one subject may wait there, or be on its way: not taken.
  // A message that is larger than the window goes alone. 4 or more.
  std::size_t bytes = 1024 * 1024;
  std::size_t messages = 4'096;
  // Of the subjects that have windows, each of which one node takes. Default: all.
  std::string prefix;
};

// The same transport, but that send and request wait while the window of their subject is full, in
// the order in which they came. All nodes of a cluster use
// windows, or none does. An empty message is refused with usage_error: it is a mark of windows.
std::unique_ptr<transport> windowed(runtime& on, std::unique_ptr<transport> over,
                                    const window_options& chosen = {});

}  // namespace troupe::cluster
