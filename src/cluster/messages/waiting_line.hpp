// waiting_line: messages that were not sent yet, in the order in which they came. Each is sent
// when it is the first, and stays the first until its place ends, even while the shard has no
// owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster::parts {

// Thread: one.
class waiting_line {
 public:
  class place {
   public:
    place(waiting_line& line, std::uint64_t number);
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place();
    task<> comes_first() const;

   private:
    waiting_line& line_;
    const std::uint64_t number_;
  };

 private:
  std::map<std::uint64_t, std::optional<event>> places_;  // by number; an event: a party waits
};

}  // namespace troupe::cluster::parts
