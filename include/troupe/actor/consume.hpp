// consume: gives an actor's object back to a caller. For the library's own use; users call
// ref::consume.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "troupe/actor/call.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

const char* consume_by_message(message* mail, void* object, message_act act);
std::exception_ptr self_consumed_error(message::handler which);

// A request for the actor's object. It stays in the actor's mail until it is the only message
// there.
struct consume_request : message {
  explicit consume_request(message::handler names) noexcept
      : message(&consume_by_message), which(names) {}
  consume_request(const consume_request&) = delete;
  consume_request& operator=(const consume_request&) = delete;

  // Whether the caller has stopped waiting for the object.
  virtual bool given_up() const noexcept = 0;
  // Takes the object. Called in the actor's turn. If it throws, the object is unchanged.
  virtual void take(void* object, bool adopted) = 0;
  // Each of the two completes the caller's future, with the object that was taken or with the
  // failure, and frees the request.
  virtual void give() noexcept = 0;
  virtual void fail(std::exception_ptr why) noexcept = 0;

  const message::handler which;  // describes the actor's class
  // These members belong to the system's table (src/actor/system/consumer_table.hpp).
  cell* actor = nullptr;
  consume_request* next_in_table = nullptr;
  bool waits_outside = false;  // whether the request waits in the table instead of in the mailbox

 protected:
  ~consume_request() = default;
};

template <class T>
struct consume_of final : consume_request {
  consume_of(promise<std::unique_ptr<T>> to, std::size_t distance) noexcept
      : consume_request(&names), promised(std::move(to)), offset(distance) {}

  static const char* names(message*, void*, message_act) { return base::type_name<T>(); }

  bool given_up() const noexcept override { return promised.abandoned(); }
  void take(void* object, bool adopted) override {
    if (adopted) {
      taken.reset(static_cast<T*>(static_cast<void*>(static_cast<std::byte*>(object) + offset)));
    } else if constexpr (std::is_move_constructible_v<T> && !std::is_abstract_v<T>) {
      taken = std::make_unique<T>(std::move(*static_cast<T*>(object)));
    } else {
      throw usage_error(std::string("troupe: consume: ") + base::type_name<T>() +
                        " cannot be moved out of the actor in which it was constructed; make it an "
                        "actor by activate()");
    }
  }
  void give() noexcept override {
    promise<std::unique_ptr<T>> answer = std::move(promised);
    std::unique_ptr<T> value = std::move(taken);
    free();
    answer.set_value(std::move(value));
  }
  void fail(std::exception_ptr why) noexcept override {
    promise<std::unique_ptr<T>> answer = std::move(promised);
    free();
    answer.set_exception(std::move(why));
  }
  void free() noexcept {
    std::destroy_at(this);
    memory::deallocate(this, sizeof(consume_of));
  }

  promise<std::unique_ptr<T>> promised;
  std::unique_ptr<T> taken;
  const std::size_t offset;  // of the T within the actor's object, of which T may be a base
};

// Whether this actor's object can be given back as a T. Through a ref of a base class only an
// object that was passed to activate() can be given back, since the unique_ptr then owns the whole
// object.
template <class T>
bool may_consume(const cell& actor) noexcept {
  return actor.type == &cell_type_of<T> || actor.type == &adopted_type_of<T> ||
         (actor.type->adopted && std::has_virtual_destructor_v<T>);
}
std::exception_ptr base_consumed_error(const cell& actor, const char* base);

// Never inlined, for the same reason as an ask (ref.hpp).
template <class T>
TROUPE_NOINLINE future<std::unique_ptr<T>> consume(cell& actor, std::size_t offset) {
  using state_type = tasks::ask_state<std::unique_ptr<T>>;
  auto& state = *::new (memory::allocate(sizeof(state_type))) state_type;
  auto promised = tasks::future_access::promise_of<std::unique_ptr<T>>(state);
  auto later = promised.get_future();
  if (&actor == current_cell()) {
    promised.set_exception(self_consumed_error(&consume_of<T>::names));
    return later;
  }
  if (!may_consume<T>(actor)) {
    promised.set_exception(base_consumed_error(actor, base::type_name<T>()));
    return later;
  }
  link_ask(state.link, actor, &consume_of<T>::names);
  state.link.kind = tasks::ask_link::subject::object;
  deliver(actor, *make_message<consume_of<T>>(std::move(promised), offset));
  return later;
}

}  // namespace troupe::actor
