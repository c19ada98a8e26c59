// warning_texts: the words of which the sentences of warnings consist.
#pragma once

#include <cstdint>
#include <string>

#include "troupe/sched/message.hpp"

namespace troupe::observing {

// "5.2 ms", "12 s".
std::string time_text(std::int64_t ns);
// "1 call", "2 calls".
std::string counted(std::uint64_t number, const char* what);
inline const char* name_of_handler(sched::message::handler method) {
  return method(nullptr, nullptr, sched::message_act::describe);
}

}  // namespace troupe::observing
