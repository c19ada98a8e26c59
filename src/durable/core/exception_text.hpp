// exception_text: the stored form of an exception, and the text that is reported for it.
#pragma once

#include <exception>

#include "troupe/durable/error.hpp"

namespace troupe::durable::parts {

// The type and the text of the exception that a handler threw.
handler_failed failure_of(const std::exception_ptr& thrown);

// The same database::error with effect::unknown, or the same shard_moved of a message that is
// stored; other exceptions stay as they are.
std::exception_ptr with_unknown_effect(const std::exception_ptr& failed);

// The same database::error for a message of which nothing was done; other exceptions stay as they
// are.
std::exception_ptr without_effect(const std::exception_ptr& failed);

// Whether the failure means that the outcome of the commit is unknown, that another process owns
// the store, or that another node owns the shard.
bool is_unknown(const std::exception_ptr& failed);
bool is_taken(const std::exception_ptr& failed);
bool is_moved(const std::exception_ptr& failed);

}  // namespace troupe::durable::parts
