// proxies: a process with a proxy for each of the servers of one node, between the node and them.
#pragma once

#include <string>
#include <vector>

namespace troupe::test {

// Begins with the line `ports` and the port of each. Obeys lines on its standard input:
//   delay US           each piece of what passes takes a random time up to this one
//   hold THERE BACK    0 or 1: whether nothing passes towards the servers, or back
//   reset              ends all connections
// It ends when its input does.
int run_proxies(const std::vector<std::string>& servers);

}  // namespace troupe::test
