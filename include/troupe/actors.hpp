// Actors, tasks, futures, scopes and timers, which suffice for most files of a program. It compiles
// in two thirds of the time of troupe.hpp, which adds I/O, lazies, contexts, locks, channels,
// streams and the kit.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/actor/blocking.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/runtime/metrics.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/runtime/timer.hpp"
#include "troupe/runtime/warning.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/results_scope.hpp"
#include "troupe/task/scope.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/traces/span.hpp"
#include "troupe/task/when.hpp"
