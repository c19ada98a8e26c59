// troupe: actors on an M-to-N scheduler. This header includes the lot.
#pragma once

#include "troupe/actor/blocking.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/runtime/timer.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"
