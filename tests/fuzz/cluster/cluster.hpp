// Gives what a hostile peer may send to a node of a cluster.
#pragma once

#include <string>
#include <string_view>

namespace troupe::test {

// The input is a list of messages: a byte that says of which kind it is, one with its length, and
// its bytes. Kinds, modulo 6: 0 a request to the node, 1 the same without an answer, 2 arguments of
// a method that the node has, 3 a value of a topic, 4 the answer to an ask of the node, 5 a message
// to a durable actor. The rest of that byte chooses the method, and its deadline. Returns "" if
// each ask has ended as it may, the frames are read and written alike, and the node still works
// afterwards; otherwise what is wrong.
std::string cluster_failure(std::string_view input);

}  // namespace troupe::test
