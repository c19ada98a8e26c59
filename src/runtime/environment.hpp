// environment: what the environment's variables change in the options.
#pragma once

#include "troupe/runtime/options.hpp"

namespace troupe {

// The options with TROUPE_WORKERS, TROUPE_POLICY and TROUPE_SEED taken in and 0 workers resolved.
// Throws option_error naming the option or variable, its value and what it may be.
runtime_options resolve(runtime_options options);

}  // namespace troupe
