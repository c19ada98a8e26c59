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

void store::check_name(const void* tag, const char* name, std::string_view key) const {
  if (!engine_->knows(tag))
    throw usage_error("troupe: durable: " + std::string(name) +
                      " was not given to store::open; add kind<T, &T::method, ...>()");
  engine_->check_key(tag, key);
}

counts store::counts() const { return engine_->counts(); }

class_shape parts::class_shape_of(std::string kind, std::uint32_t schema, std::string shape) {
  const std::uint64_t fingerprint = fingerprint_of(shape);
  return {std::move(kind), schema, fingerprint, std::move(shape)};
}

void parts::add_names(const std::string& kind, std::uint32_t schema, const shape_texts& shapes,
                      std::vector<class_shape>& to) {
  if (shapes.named != shapes.plain)
    to.push_back(class_shape_of(kind + " names", schema, shapes.named));
  if (shapes.exact != shapes.plain)
    to.push_back(class_shape_of(kind + " exact", schema, shapes.exact));
}

// Of a method the signature is part of the name: with other parameters it is another method.
void parts::add_method_names(kind_table& to, const std::vector<std::string>& exact_shapes) {
  for (std::size_t i = 0; i < to.methods.size(); ++i) {
    const method_entry& method = to.methods[i];
    const std::string name =
        to.name + "::" + method.name + " " + message_id{0, method.signature}.to_string().substr(16);
    add_names(name, 1, {method.shape, method.named_shape, exact_shapes[i]}, to.named_shapes);
  }
}

std::string parts::last_part(std::string_view name) {
  const std::size_t at = name.rfind(':');
  if (at != std::string_view::npos) name.remove_prefix(at + 1);
  if (name.starts_with('&')) name.remove_prefix(1);
  return std::string(name);
}

}  // namespace troupe::durable
