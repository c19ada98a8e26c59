#include "troupe/durable/storage.hpp"

#include <string_view>

#include "troupe/base/error.hpp"
#include "troupe/durable/codec.hpp"

namespace troupe::durable {

call_identity call_identity::of(const stored_message& message) {
  const auto* const first = reinterpret_cast<const char*>(message.arguments.data());
  return {message.method, fingerprint_of(std::string_view(first, message.arguments.size()))};
}

void check_reminder_name(std::string_view name) {
  if (name.size() > reminder_name_bytes_max)
    throw usage_error("troupe: durable: the name of a reminder has " + std::to_string(name.size()) +
                      " bytes, and at most " + std::to_string(reminder_name_bytes_max) +
                      " can be stored");
}

void storage::check_name(std::string_view, std::string_view) const {}

task<std::uint64_t> storage::reserve_orders() {
  throw usage_error("troupe: durable: " + name() + " is no storage of a cluster");
  co_return 0;
}

void storage::act_for(std::vector<std::uint32_t>) {}

}  // namespace troupe::durable
