// faulty_storage: a storage of a simulated program, which fails at the operations that a search
// chooses.
#pragma once

#include <memory>

#include "troupe/durable/storage.hpp"

namespace troupe::durable::parts {

// In a handler or a task of a simulated program: that storage, whose calls can have the faults of a
// search (docs/protocols/simulation.md). Elsewhere the same storage. A seed alone has no faults.
std::unique_ptr<storage> with_faults(std::unique_ptr<storage> whole);

}  // namespace troupe::durable::parts
