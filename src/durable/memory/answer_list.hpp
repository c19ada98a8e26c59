// answer_list: the ends of calls that wait for an answer or for a commit.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "troupe/durable/call.hpp"

namespace troupe::durable::parts {

// Complete all of the list, which is empty afterwards.
void give_all(std::unique_ptr<answer_to>& first, std::span<const std::byte> value) noexcept;
void fail_all(std::unique_ptr<answer_to>& first, const std::exception_ptr& why) noexcept;

// The ends of calls that fail when the mutex is free.
using refusals = std::vector<std::pair<std::unique_ptr<answer_to>, std::exception_ptr>>;

}  // namespace troupe::durable::parts
