// cluster: actors that are found from every program of a cluster.
// This header includes the whole component troupe::cluster.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/cluster/activation.hpp"
#include "troupe/cluster/calls.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/cluster/home.hpp"
#include "troupe/cluster/kind.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/options.hpp"
#include "troupe/cluster/ref.hpp"
#include "troupe/cluster/simulated_network.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/cluster/topic.hpp"
