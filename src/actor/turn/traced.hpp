// traced: one section of an actor's turn in a trace, from construction to destruction.
#pragma once

#include <cstdint>

#include "observe/ring.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

// Does nothing when no trace is taken.
class traced {
 public:
  traced(observe::event begin, const char* text, const cell& actor) noexcept
      : end_(static_cast<observe::event>(static_cast<int>(begin) + 1)) {
    if (!observe::tracing()) [[likely]]
      return;
    text_ = text;
    id_ = id_of(actor);
    observe::record(begin, text_, id_);
  }
  // The section in which a message is handled.
  traced(const message& handled, message::handler method, const cell& actor) noexcept
      : end_(observe::event::handle_end) {
    if (!observe::tracing()) [[likely]]
      return;
    text_ = method(nullptr, nullptr, message_act::describe);
    id_ = id_of(actor);
    observe::record_message(observe::event::handle_begin, text_, id_, &handled);
  }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;
  ~traced() {
    if (text_ != nullptr) [[unlikely]]
      observe::record(end_, text_, id_);
  }

 private:
  const observe::event end_;
  const char* text_ = nullptr;
  std::uint64_t id_ = 0;
};

}  // namespace troupe::actor
