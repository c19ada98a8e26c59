// otlp: the exporter of OpenTelemetry spans.
// This header includes the whole component troupe::otlp.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/otlp/exporter.hpp"
