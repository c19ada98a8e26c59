// core_parts: the parts of a runtime's core that several answers read.
#pragma once

namespace troupe {
class runtime_core;
namespace io {
class reactor;
}
}  // namespace troupe

namespace troupe::observing {

// The duration of one tick of the counts.
double ns_per_tick_of(const runtime_core& core) noexcept;
// Null before the first operation.
const io::reactor* reactor_of(const runtime_core& core) noexcept;

}  // namespace troupe::observing
