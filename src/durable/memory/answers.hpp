// answers: the ends of calls that wait for an answer or for a commit.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include "troupe/durable/call.hpp"

namespace troupe::durable::parts {

// Complete all of the list, which is empty afterwards.
void give_all(std::unique_ptr<answer_to>& first, std::span<const std::byte> value) noexcept;
void fail_all(std::unique_ptr<answer_to>& first, const std::exception_ptr& why) noexcept;

}  // namespace troupe::durable::parts
