// error: what callers of durable actors get besides database::error.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"

namespace troupe::durable {

// The handler of a durable actor threw. What it had changed and sent was rolled back. The type and
// the text of the exception are stored with the message, so they are the same after a crash.
class handler_failed : public error {
 public:
  handler_failed(std::string type, const std::string& text) : error(text), type_(std::move(type)) {}
  // The type of the exception as the compiler spells it.
  const std::string& type() const noexcept { return type_; }

 private:
  std::string type_;
};

// What is stored cannot be read by this program: it was written by a newer one, or by one whose
// types have the same schema number and other members. The data stays as it is.
class schema_error : public error {
  using error::error;
};

// The program has no such class or method of durable actors, or one with other parameters.
class unknown_method : public error {
  using error::error;
};

// The id of the message was used before for a message to the same actor with another method or with
// other arguments. Nothing was done: send the message with an id of its own.
class id_mismatch : public error {
  using error::error;
};

// More messages, or more bytes of them, wait than options::waiting_max and waiting_bytes_max say.
// The message was not stored: try again later.
class store_full : public error {
 public:
  using error::error;
  std::optional<std::chrono::nanoseconds> try_again_in() const noexcept override {
    return std::chrono::seconds(1);
  }
};

// Another process has opened the store since. This one can store nothing any more.
class store_taken : public error {
  using error::error;
};

// In a cluster: another node owns the actor now, or is about to. This one has changed nothing.
class shard_moved : public error {
 public:
  shard_moved(std::vector<std::uint32_t> shards, const std::string& text, bool is_stored = false)
      : error(text), shards_(std::move(shards)), is_stored_(is_stored) {}
  // Those that have moved; empty if the thrower does not know.
  const std::vector<std::uint32_t>& shards() const noexcept { return shards_; }
  // The message is stored, and the new owner handles it. If you send it again, use the same id.
  bool is_stored() const noexcept { return is_stored_; }

 private:
  std::vector<std::uint32_t> shards_;
  bool is_stored_;
};

}  // namespace troupe::durable
