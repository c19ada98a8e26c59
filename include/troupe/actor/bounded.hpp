// bounded: how a sender or an ask waits for space in a bounded mailbox. For the library's own use;
// users call ref::send and ref::ask.
#pragma once

#include "troupe/base/language.hpp"

#include <utility>

#include "troupe/actor/call.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

// Space for one message in a bounded mailbox. The destructor gives the space back unless use() was
// called.
class permit {
 public:
  explicit permit(cell& to) noexcept;
  permit(permit&& other) noexcept : to_(std::exchange(other.to_, nullptr)), used_(other.used_) {}
  permit& operator=(permit&&) = delete;
  ~permit();
  void use() noexcept { used_ = true; }

 private:
  cell* to_;
  bool used_ = false;
};

// Resolves `waiter` with a permit as soon as the mailbox has space for it; waiters are served in
// order. Thread: any.
void wait_for_permit(cell& to, promise<permit>&& waiter);

// Whether an ask of a full mailbox waits; otherwise it fails.
bool ask_waits_for_room(cell& to) noexcept;
// The mailbox was full: delivers the ask as soon as there is space. Takes ownership of the ask,
// even if it throws std::bad_alloc.
void deliver_when_room(cell& to, message& ask, const tasks::shared_state& answer);

// Never inlined, for the same reason as an ask (ref.hpp).
template <class T>
TROUPE_NOINLINE future<permit> wait_for_permit_of(cell& to) {
  auto& state =
      *::new (memory::allocate(sizeof(tasks::ask_state<permit>))) tasks::ask_state<permit>;
  state.link.kind = tasks::ask_link::subject::permit;
  state.link.asked = &to;
  state.link.method = [](message*, void*, message_act) -> const char* {
    return base::type_name<T>();
  };
  promise<permit> granted = tasks::future_access::promise_of<permit>(state);
  future<permit> later = granted.get_future();
  wait_for_permit(to, std::move(granted));
  return later;
}

}  // namespace troupe::actor
