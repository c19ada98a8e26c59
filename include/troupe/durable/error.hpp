// error: the errors of durable actors for callers, besides database::error.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"

namespace troupe::durable {

// The handler of a durable actor threw. Its changes and messages were rolled back. The type and the
// text of the exception are stored with the message: they are the same after a crash.
class handler_failed : public error {
 public:
  handler_failed(std::string type, const std::string& text) : error(text), type_(std::move(type)) {}
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::never};
  }
  // The type of the exception as the compiler spells it.
  const std::string& type() const noexcept { return type_; }

 private:
  std::string type_;
};

// The stored data cannot be read by this program: it was written by a newer program, or by one
// whose types have the same schema number and other members. The data is unchanged.
class schema_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::never};
  }
};

// The program has no such class or method of durable actors, or one with other parameters.
class unknown_method : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// The id of the message was used before for a message to the same actor with another method or with
// other arguments. Nothing was done: send the message with an id of its own.
class id_mismatch : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// More messages than options::waiting_max wait, or more bytes than options::waiting_bytes_max. The
// message was not stored: try again later.
class store_full : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::later};
  }
};

// Another process has opened the store since. This one can store nothing any more.
class store_taken : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::never};
  }
};

// In a cluster: another node owns the actor now, or will own it soon. This node has changed
// nothing.
class shard_moved : public error {
 public:
  shard_moved(std::vector<std::uint32_t> shards, const std::string& text, bool is_stored = false)
      : error(text), shards_(std::move(shards)), is_stored_(is_stored) {}
  verdict judged() const noexcept override {
    return {verdict::party::upstream, is_stored_ ? verdict::effect::done : verdict::effect::none,
            verdict::again::later};
  }
  // The shards that have moved; empty if they are not known.
  const std::vector<std::uint32_t>& shards() const noexcept { return shards_; }
  // The message is stored, and the new owner handles it. If you send it again, use the same id.
  bool is_stored() const noexcept { return is_stored_; }

 private:
  std::vector<std::uint32_t> shards_;
  bool is_stored_;
};

}  // namespace troupe::durable
