// metrics: a program's numbers in the text format of Prometheus.
#pragma once

#include <string>

#include "program.hpp"

namespace troupe_tool {

// `summary` is a program's answer to that question. In base units: seconds and bytes.
std::string as_metrics(const json& summary);

}  // namespace troupe_tool
