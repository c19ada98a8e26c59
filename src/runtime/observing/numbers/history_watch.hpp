// history_watch: looks at all numbers of an observed runtime once a second, and keeps them for an
// hour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "observe/history/history.hpp"
#include "observe/numbers/tables.hpp"
#include "runtime/observing/numbers/json_text.hpp"

namespace troupe::observing {

// Thread: the observer's; readers hold the lock under which it looks.
class history_watch {
 public:
  // `collects` adds all numbers of the moment. It may throw std::bad_alloc.
  explicit history_watch(std::function<void(observe::number_tables&)> collects);

  // Looks if that is due. Returns the time of the next look.
  std::int64_t look(std::int64_t now_ns) noexcept;
  // Appends an object with the series of `count` seconds that end `ago_ns` ago. Of the tables with
  // this prefix only, if it is not empty. Throws std::bad_alloc.
  void write(json_text& text, std::int64_t ago_ns, std::size_t count,
             std::string_view prefix) const;

 private:
  const std::function<void(observe::number_tables&)> collects_;
  std::int64_t next_ns_;
  observe::history kept_;
};

}  // namespace troupe::observing
