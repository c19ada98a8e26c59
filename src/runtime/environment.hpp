// environment: applies the environment's variables to the options.
#pragma once

#include "troupe/runtime/options.hpp"

namespace troupe {

// Returns the options changed by the variables (docs/guide/reference.md lists them), with 0 workers
// resolved. Throws option_error naming the option or variable, its value and the allowed values.
runtime_options resolve(runtime_options options);

// While it exists, a runtime that the calling thread makes is one of the library's own, for a
// service beside the program: the variables for the policy and for observers are not for it.
class own_service {
 public:
  own_service() noexcept;
  own_service(const own_service&) = delete;
  own_service& operator=(const own_service&) = delete;
  ~own_service();
};

}  // namespace troupe
