#include "nats/client/unread.hpp"

#include <malloc.h>

#include <chrono>

#include "nats/client/client_state.hpp"
#include "troupe/base/error.hpp"

namespace troupe::nats {

unread_limit::unread_limit(std::size_t bytes, std::size_t per_connection)
    : book_(
          std::make_shared<unread_book>(bytes, per_connection == 0 ? bytes / 8 : per_connection)) {
  if (bytes < unread_bytes_least || (per_connection != 0 && per_connection < unread_bytes_least))
    throw option_error("troupe: nats: an unread_limit must be at least 64 KiB");
}

// With the ledger's mutex. A subscription that is being destroyed gives its bytes back itself.
void unread_account::end_account() noexcept {
  std::shared_ptr<subscription_state> self = owner_.weak_from_this().lock();
  if (self == nullptr) return;
  unread_book& book = connection_->book();
  const std::lock_guard lock(book.mutex);
  self->next_to_end = std::move(book.ended);
  book.ended = std::move(self);
  book.has_ended.store(true, std::memory_order_relaxed);  // order: relaxed  as in take_ended()
}

namespace {

// Messages are freed on other threads than those that allocate the next ones: glibc would keep
// the memory of both. A second apart, since it looks through all of the heap.
void give_memory_back(unread_book& book) noexcept {
#if defined(__GLIBC__)
  constexpr std::int64_t pause_ns = 1'000'000'000;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  // order: relaxed  two that see the same time both trim, which does no harm
  if (now - book.trimmed_ns.load(std::memory_order_relaxed) < pause_ns) return;
  book.trimmed_ns.store(now, std::memory_order_relaxed);  // order: relaxed  as above
  ::malloc_trim(0);
#else
  static_cast<void>(book);
#endif
}

}  // namespace

void end_largest(unread_book& book) {
  std::shared_ptr<subscription_state> next = book.take_ended();
  if (next == nullptr) return;
  while (next != nullptr) {
    const std::shared_ptr<subscription_state> largest = std::move(next);
    next = std::move(largest->next_to_end);
    try {
      largest->give_way();
    } catch (const std::bad_alloc&) {  // it is asked again when it is the largest
      largest->unread.go_on();
    }
  }
  give_memory_back(book);
}

// As many messages as there are now: the connection may deliver more meanwhile.
void subscription_state::give_way() {
  std::uint64_t messages = 0, missed_before = 0;
  std::unique_lock taking(giving_way);
  for (std::size_t left = arrived.size(); left > 0; --left) {
    const std::optional<message> lost = arrived.try_receive();
    if (!lost) break;
    ++messages;
    missed_before += lost->missed;
    bytes.fetch_sub(bytes_of(*lost), std::memory_order_relaxed);  // order: relaxed  a bound
    unread.take(memory_of(*lost));
  }
  // order: relaxed  statistics; they publish nothing
  missed.fetch_add(messages, std::memory_order_relaxed);
  missed_now.fetch_add(messages + missed_before, std::memory_order_relaxed);
  taking.unlock();
  unread.go_on();
  const std::shared_ptr<client_state> by = owner.lock();
  if (by == nullptr) return;
  by->note_missed(messages);
  if (!ends_when_largest || by->has_ended(*this)) return;
  by->end_subscription(
      shared_from_this(),
      outcome::failed(failure::too_much_kept,
                      "troupe: nats: too much waits to be read, and most of it in the subscription "
                      "to " +
                          subject + ": read faster, or allow more (options::unread_bytes_max)"));
}

}  // namespace troupe::nats
