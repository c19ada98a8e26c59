// simulated_network: the transport of a node in it. Without faults it is the transport of tests in
// one process, including under the policies with threads.
#pragma once

#include <memory>
#include <string>

#include "cluster/transport/transport.hpp"
#include "troupe/cluster/simulated_network.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

std::unique_ptr<transport> transport_of(const simulated_network& network, runtime& on,
                                        std::string node);

}  // namespace troupe::cluster
