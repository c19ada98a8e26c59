// environment: what the environment's variables change in the options.
#pragma once

#include "troupe/runtime/options.hpp"

namespace troupe {

// The options with the variables taken in (docs/guide/reference.md lists them) and 0 workers
// resolved. Throws option_error naming the option or variable, its value and what it may be.
runtime_options resolve(runtime_options options);

}  // namespace troupe
