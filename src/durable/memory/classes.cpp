#include "durable/memory/classes.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"
#include "troupe/durable/error.hpp"

namespace troupe::durable::parts {
namespace {

void check(const std::vector<kind_table>& kinds) {
  for (const kind_table& kind : kinds) {
    const auto same = [&kind](const kind_table& other) {
      return other.name == kind.name || other.tag == kind.tag;
    };
    if (std::ranges::count_if(kinds, same) > 1)
      throw option_error("troupe: durable: two classes are called " + kind.name +
                         "; give one of them another name, kind<T, ...>(\"name\")");
    for (const method_entry& method : kind.methods) {
      if (std::ranges::count(kind.methods, method.name, &method_entry::name) > 1)
        throw option_error("troupe: durable: " + kind.name + " has two methods called " +
                           method.name + "; messages are stored by the name alone");
    }
  }
}

// State that was stored before there were names matches as it is, and has the names from now on.
void compare_names(const kind_table& kind, const std::vector<class_shape>& stored,
                   const std::string& storage, std::vector<class_shape>& added) {
  for (const named_shape& named : kind.named_shapes) {
    for (const class_shape& shape : named.rows) {
      const auto known = std::ranges::find_if(stored, [&shape](const class_shape& other) {
        return other.kind == shape.kind && other.schema == shape.schema;
      });
      if (known != stored.end() && known->fingerprint == shape.fingerprint) continue;
      if (known != stored.end() && !reads_shape(named.full, known->shape))
        throw schema_error(
            "troupe: durable: " + storage + " has " + shape.kind + " with schema number " +
            std::to_string(shape.schema) + " as " + known->shape + ", and the program has it as " +
            shape.shape +
            ": enumerators or alternatives were removed, or have other values or names. Give the "
            "class a new schema number and an upgrade function, or the method another name");
      added.push_back(shape);
    }
  }
}

// Events have no schema number of their own, and are read as the type of the program whatever the
// number is under which they were stored. So that type reads all earlier ones; and the one of a
// newer program, if that has a full shape, reads it.
void compare_events(const kind_table& kind, const std::vector<class_shape>& stored,
                    const std::string& storage) {
  const std::string name = kind.event_shapes.front().kind;
  const auto events = std::ranges::find(kind.named_shapes, name, &named_shape::kind);
  for (const class_shape& other : stored) {
    const bool is_full = other.kind == name + " full";
    if (!is_full && other.kind != name && other.kind != name + " names" &&
        other.kind != name + " exact")
      continue;
    const bool fits = other.schema < events->schema
                          ? reads_shape(events->full, other.shape, growth::alternatives)
                      : other.schema > events->schema && is_full
                          ? reads_shape(other.shape, events->full, growth::alternatives)
                          : true;
    if (!fits)
      throw schema_error(
          "troupe: durable: " + storage + " has " + other.kind + " with schema number " +
          std::to_string(other.schema) + " as " + other.shape + ", and the program has it with " +
          std::to_string(events->schema) + " as " + events->full +
          ". Stored events have no schema number and are read as the program's type: alternatives "
          "of a std::variant and enumerators may be added, and nothing else may change. Keep the "
          "former alternatives at their places, and append one for the changed type");
  }
}

object read_object(const activation& actor, const stored_state& found) {
  // Only its events are stored so far.
  if (found.value.empty() && found.number == 0) return actor.kind.make();
  const auto known = std::ranges::find(actor.kind.shapes, found.schema, &class_shape::schema);
  if (known == actor.kind.shapes.end() || known->fingerprint != found.fingerprint)
    throw schema_error("troupe: durable: " + actor.kind.name + " " + actor.key +
                       " is stored with schema number " + std::to_string(found.schema) +
                       ", which this program does not know or has with other members; it stays "
                       "as it is. Use the program that wrote it, or one with an upgrade function");
  return actor.kind.read(found.schema, found.value);
}

}  // namespace

classes::classes(std::vector<kind_table> kinds) : kinds_(std::move(kinds)) { check(kinds_); }

// Returns the classes that are new to the storage. Throws schema_error for a class that is stored
// with other members.
std::vector<class_shape> classes::compare(const std::vector<class_shape>& stored,
                                          const std::string& storage) {
  std::vector<class_shape> added;
  for (const kind_table& kind : kinds_) {
    std::vector<class_shape> shapes = kind.shapes;
    shapes.insert(shapes.end(), kind.event_shapes.begin(), kind.event_shapes.end());
    for (const class_shape& shape : shapes) {
      const auto same = [&shape](const class_shape& other) {
        return other.kind == shape.kind && other.schema == shape.schema;
      };
      const auto known = std::ranges::find_if(stored, same);
      if (known == stored.end()) {
        added.push_back(shape);
      } else if (known->fingerprint != shape.fingerprint) {
        throw schema_error("troupe: durable: " + storage + " has " + shape.kind +
                           " with schema number " + std::to_string(shape.schema) + " as " +
                           known->shape + ", and the program has it as " + shape.shape +
                           "; give the class a new schema number and an upgrade function");
      }
    }
    compare_names(kind, stored, storage, added);
    if (kind.event_shapes.empty()) continue;
    compare_events(kind, stored, storage);
    const class_shape& of_events = kind.event_shapes.front();
    std::uint32_t newest = of_events.schema;
    for (const class_shape& other : stored) {
      if (other.kind == of_events.kind) newest = std::max(newest, other.schema);
    }
    if (newest > of_events.schema) newer_events_[kind.name] = newest;
  }
  is_compared_ = true;
  return added;
}

const kind_table* classes::find(const void* tag) const noexcept {
  const auto at = std::ranges::find(kinds_, tag, &kind_table::tag);
  return at == kinds_.end() ? nullptr : &*at;
}
const kind_table* classes::find(std::string_view name) const noexcept {
  TROUPE_INVARIANT(std::ranges::count(kinds_, name, &kind_table::name) <= 1, "K1");
  const auto at = std::ranges::find(kinds_, name, &kind_table::name);
  return at == kinds_.end() ? nullptr : &*at;
}

// Null if the class has no such method, or one with other parameters or another result.
const method_entry* classes::find_method(const kind_table& kind, std::string_view name,
                                         std::uint64_t signature) noexcept {
  const auto fits = [&](const method_entry& method) {
    return method.name == name && method.signature == signature;
  };
  const auto at = std::ranges::find_if(kind.methods, fits);
  return at == kind.methods.end() ? nullptr : &*at;
}

object classes::object_of(const activation& actor, const std::optional<stored_state>& found) const {
  TROUPE_INVARIANT(is_compared_, "K2");
  if (!found) return actor.kind.make();
  try {
    object loaded = read_object(actor, *found);
    apply_events(actor, *found, loaded);
    return loaded;
  } catch (const decode_error& wrong) {
    std::string_view why = wrong.what();
    constexpr std::string_view prefix = "troupe: durable: ";
    if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
    throw decode_error(std::string(prefix) + actor.kind.name + " " + actor.key +
                       " cannot be read: " + std::string(why));
  }
}

// Events have no number of their own: the newest that the store has seen shows whether an event may
// be of a newer program.
void classes::apply_events(const activation& actor, const stored_state& found,
                           object& object) const {
  if (found.events.empty()) return;
  if (actor.kind.apply == nullptr)
    throw schema_error("troupe: durable: " + actor.kind.name + " " + actor.key +
                       " is stored as events, and this program's class has none");
  try {
    for (const bytes& event : found.events) actor.kind.apply(object.get(), event);
  } catch (const decode_error&) {
    const auto newer = newer_events_.find(actor.kind.name);
    if (newer == newer_events_.end()) throw;
    throw schema_error("troupe: durable: " + actor.kind.name + " " + actor.key +
                       " has events that this program cannot read; a program with schema number " +
                       std::to_string(newer->second) +
                       " has opened the store. They stay as they are: use that program");
  }
}

}  // namespace troupe::durable::parts
