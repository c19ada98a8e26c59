// topic_table: the topics to which this node has subscribed, and their readers here.
//
// Invariants
//   N9  A topic is in the table while it has readers. The node takes the subject of a topic once,
//       for its first reader, and leaves it after the last.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cluster/core/node_core.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class topic_table {
 public:
  explicit topic_table(node_core& core) noexcept : core_(core) {}

  task<> publish(std::string topic, std::string frame);
  task<> subscribe(std::string topic, std::string group, std::shared_ptr<topic_reader> reader);
  void unsubscribe(const std::shared_ptr<topic_reader>& reader) noexcept;
  // Ends all readers.
  void close() noexcept;

 private:
  struct topic {
    std::vector<std::shared_ptr<topic_reader>> readers;
    std::size_t next = 0;  // of a group, the reader that gets the next value
  };
  using topic_name = std::pair<std::string, std::string>;  // subject and group

  // The readers of one value; none if the topic has ended.
  std::vector<std::shared_ptr<topic_reader>> readers_of(const topic_name& name);
  static task<> give(topic_table* self, state_ref node, topic_name name, std::string frame);

  node_core& core_;
  std::mutex mutex_;                    // guards the members below
  std::map<topic_name, topic> topics_;  // N9
};

}  // namespace troupe::cluster::parts
