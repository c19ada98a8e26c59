// stored: the headers and answers of JetStream.
#pragma once

#include "troupe/nats/message.hpp"
#include "troupe/nats/stored.hpp"

namespace troupe::nats {

void add_expectations(headers& head, const store_options& chosen);
// Throws stream_error, and error (refused) for an answer that is none of JetStream.
stored read_stored(const message& answer);

}  // namespace troupe::nats
