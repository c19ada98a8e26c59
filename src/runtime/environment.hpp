// environment: applies the environment's variables to the options.
#pragma once

#include "troupe/runtime/options.hpp"

namespace troupe {

// Returns the options changed by the variables (docs/guide/reference.md lists them), with 0 workers
// resolved. Throws option_error naming the option or variable, its value and what it may be.
runtime_options resolve(runtime_options options);

}  // namespace troupe
