// attachment: an object of a component that lives with a runtime. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>

namespace troupe {

class hold;
class runtime;

namespace detail {

class attachment {
 public:
  attachment() = default;
  attachment(const attachment&) = delete;
  attachment& operator=(const attachment&) = delete;
  // Called when the runtime ends, after its last actor.
  virtual ~attachment() = default;
  // Called when the pool has ended, while actors may still wait for things in this object.
  virtual void close() noexcept = 0;
};

// Returns the runtime's attachment of that key; the first call makes it. Thread: any. Throws as
// `make` does.
attachment& attach(runtime& to, const void* key, std::unique_ptr<attachment> (*make)());

// A hold of the runtime whose turn the calling thread runs. Throws usage_error elsewhere; `caller`
// names the caller.
hold hold_here(const char* caller);

}  // namespace detail
}  // namespace troupe
