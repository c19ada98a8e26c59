#include "troupe/durable/store.hpp"

#include "durable/engine/engine.hpp"

namespace troupe::durable {

task<store> store::open_kinds(runtime& on, std::unique_ptr<storage> storage, options chosen,
                              std::vector<parts::kind_table> kinds) {
  auto engine = std::make_shared<parts::engine>(on, std::move(storage), chosen, std::move(kinds));
  auto opens = engine->open();
  co_await std::move(opens);
  co_return store(std::move(engine));
}

namespace {

void check_class(const parts::engine& engine, const void* tag, const char* name) {
  if (!engine.knows(tag))
    throw usage_error("troupe: durable: " + std::string(name) +
                      " was not given to store::open; add kind<T, &T::method, ...>()");
}

}  // namespace

void store::check_name(const void* tag, const char* name, std::string_view key) const {
  check_class(*engine_, tag, name);
  engine_->check_key(tag, key);
}

task<key_page> store::keys_of(std::shared_ptr<parts::engine> engine, const void* tag,
                              const char* name, key_range range) {
  constexpr std::size_t most_max = 10'000;
  check_class(*engine, tag, name);
  if (range.most == 0 || range.most > most_max)
    throw usage_error("troupe: durable: key_range::most is " + std::to_string(range.most) +
                      ": it is 1 to " + std::to_string(most_max));
  const std::size_t most = range.most++;  // the additional key shows whether there is another page
  auto asks = engine->keys(tag, std::move(range));
  key_page page;
  page.keys = co_await std::move(asks);
  page.has_more = page.keys.size() > most;
  if (page.has_more) page.keys.pop_back();
  co_return page;
}

counts store::counts() const { return engine_->counts(); }

class_shape parts::class_shape_of(std::string kind, std::uint32_t schema, std::string shape) {
  const std::uint64_t fingerprint = fingerprint_of(shape);
  return {std::move(kind), schema, fingerprint, std::move(shape)};
}

// Events have a full shape always: the shapes of two schema numbers are compared with it.
parts::named_shape parts::named_shape_of(std::string kind, std::uint32_t schema,
                                         const shape_texts& shapes) {
  named_shape named{std::move(kind), schema, shapes.full, {}};
  const auto add = [&](const char* suffix, const std::string& shape) {
    named.rows.push_back(class_shape_of(named.kind + suffix, schema, shape));
  };
  if (shapes.named != shapes.plain) add(" names", shapes.named);
  if (shapes.exact != shapes.plain) add(" exact", shapes.exact);
  if (shapes.full != shapes.plain || named.kind.ends_with(" event")) add(" full", shapes.full);
  return named;
}

// Of a method the signature is part of the name: with other parameters it is another method.
void parts::add_method_names(kind_table& table, const method_entry& method,
                             const shape_texts& shapes) {
  const std::string signature = message_id{0, method.signature}.to_string().substr(16);
  table.named_shapes.push_back(
      named_shape_of(table.name + "::" + method.name + " " + signature, 1, shapes));
}

std::string parts::last_part(std::string_view name) {
  const std::size_t at = name.rfind(':');
  if (at != std::string_view::npos) name.remove_prefix(at + 1);
  if (name.starts_with('&')) name.remove_prefix(1);
  return std::string(name);
}

}  // namespace troupe::durable
