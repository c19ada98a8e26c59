#include "durable/core/exception_text.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

#include "troupe/database/error.hpp"

namespace troupe::durable::parts {
namespace {

// Of the exception that is being handled.
std::string type_of_current() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown";
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr), &std::free);
  return name == nullptr ? type->name() : name.get();
}

}  // namespace

handler_failed failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const handler_failed& of_another) {
    return of_another;
  } catch (const std::exception& known) {
    return handler_failed(type_of_current(), known.what());
  } catch (...) {
    return handler_failed(type_of_current(), "an exception without a text");
  }
}

std::exception_ptr with_unknown_effect(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const database::error& known) {
    return std::make_exception_ptr(
        database::error(known.kind(), known.code(),
                        std::string(known.what()) +
                            "; the message is stored, and is handled when the store is back",
                        known.broken_rule(), database::effect::unknown));
  } catch (const shard_moved& moved) {
    return std::make_exception_ptr(shard_moved(moved.shards(), moved.what(), true));
  } catch (...) {
    return failed;
  }
}

std::exception_ptr without_effect(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const database::error& known) {
    return std::make_exception_ptr(database::error(
        known.kind(), known.code(),
        "troupe: durable: the message was not handled, since the database is unavailable: " +
            std::string(known.what()),
        known.broken_rule(), database::effect::none));
  } catch (...) {
    return failed;
  }
}

bool is_unknown(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const database::error& known) {
    return known.effect() == database::effect::unknown;
  } catch (...) {
    return false;
  }
}

bool is_taken(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const store_taken&) {
    return true;
  } catch (...) {
    return false;
  }
}

bool is_moved(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const shard_moved&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace troupe::durable::parts
