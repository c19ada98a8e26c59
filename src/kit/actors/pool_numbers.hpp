// pool_numbers: the counts of a component's pool among a program's numbers, without the program's
// doing anything for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "troupe/kit/pool_core.hpp"

namespace troupe::kit {

// As shown_numbers, for as long as the result lives; but a second pool of a name is "name (2)".
// `reads` is called under a lock that the end of the result takes.
std::shared_ptr<const void> show_pool(std::string name, std::function<pool_counts()> reads);

}  // namespace troupe::kit
