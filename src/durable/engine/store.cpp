#include "troupe/durable/store.hpp"

#include "durable/engine/engine.hpp"

namespace troupe::durable {

task<store> store::open_kinds(runtime& on, std::unique_ptr<storage> in, options chosen,
                              std::vector<parts::kind_table> kinds) {
  auto made = std::make_shared<parts::engine>(on, std::move(in), chosen, std::move(kinds));
  auto opens = made->open();
  co_await std::move(opens);
  co_return store(std::move(made));
}

void store::check_kind(const void* tag, const char* name) const {
  if (!engine_->knows(tag))
    throw usage_error("troupe: durable: " + std::string(name) +
                      " was not given to store::open; add kind<T, &T::method, ...>()");
}

counts store::counts() const { return engine_->counts(); }

std::string parts::last_part(std::string_view name) {
  const std::size_t at = name.rfind(':');
  if (at != std::string_view::npos) name.remove_prefix(at + 1);
  if (name.starts_with('&')) name.remove_prefix(1);
  return std::string(name);
}

}  // namespace troupe::durable
