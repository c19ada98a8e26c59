// json_text: the writer of JSON, by the name that this layer has for it.
#pragma once

#include "base/text/json_text.hpp"

namespace troupe::observing {

using base::json_text;

}  // namespace troupe::observing
