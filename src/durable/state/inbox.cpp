#include "durable/state/inbox.hpp"

#include "base/invariant.hpp"

namespace troupe::durable::parts {

void inbox::change(backlog to) noexcept {
  // A reading begins with unread rows, and only a reading finds out that no row is unread.
  TROUPE_INVARIANT(to == backlog::is_read  ? state_ == backlog::unread
                   : to == backlog::unread ? true
                                           : state_ == backlog::is_read,
                   "I4");
  state_ = to;
  if (!is_read()) removed_meanwhile_.clear();
}

void inbox::renumber(stored_message& message) {
  const bool is_held = held_.erase(message.order) != 0;
  message.order = next_order();
  if (is_held) held_.insert(message.order);
}

void inbox::count(record& message) noexcept {
  if (message.counted_in == generation_) return;
  message.counted_in = generation_;
  message.counted_bytes = message.row.arguments.size();
  ++waiting_;
  waiting_bytes_ += message.counted_bytes;
}

void inbox::set_left_out(record& message, bool now) noexcept {
  if (message.is(message_place::left_out) == now) return;
  TROUPE_INVARIANT(now || outside_ > 0, "I2");
  message.move(now ? message_place::left_out : message_place::here);
  now ? ++outside_ : --outside_;
}

void inbox::leave(record& message) noexcept {
  if (message.counted_in == generation_) {
    TROUPE_INVARIANT(waiting_ > 0 && waiting_bytes_ >= message.counted_bytes, "I1");
    --waiting_;
    waiting_bytes_ -= message.counted_bytes;
  }
  message.counted_in = 0;
  set_left_out(message, false);
  held_.erase(message.row.order);
  TROUPE_INVARIANT(outside_ <= waiting_, "I2");
}

void inbox::begin_backlog(std::uint64_t read_up_to) noexcept {
  if (state_ == backlog::none) change(backlog::unread);
  read_up_to_ = read_up_to;
}

void inbox::read_from_begin(std::uint64_t after_batch) noexcept {
  begin_backlog(0);
  read_after_ = after_batch;
}

void inbox::forget() noexcept {
  ++generation_;
  waiting_ = outside_ = waiting_bytes_ = 0;
  held_.clear();
  read_from_begin();
}

void inbox::end_reading() noexcept {
  change(backlog::none);
  held_.clear();
}

std::uint64_t inbox::begin_page() noexcept {
  TROUPE_INVARIANT(is_read(), "I4");
  removed_meanwhile_.clear();
  return read_up_to_;
}

bool inbox::skips(std::uint64_t order) noexcept {
  TROUPE_INVARIANT(is_read() && order > read_up_to_, "I3");
  read_up_to_ = order;
  return held_.contains(order) || removed_meanwhile_.contains(order);
}

void inbox::handled(const std::vector<std::uint64_t>& orders) {
  TROUPE_INVARIANT(is_read() || removed_meanwhile_.empty(), "I5");
  if (is_read()) removed_meanwhile_.insert(orders.begin(), orders.end());
}

}  // namespace troupe::durable::parts
