// client_core: the resources that a client's requests share, and its HTTP/2 connections.
#pragma once

#include <utility>

#include "http/client/client_resources.hpp"
#include "http/client/streams/stream_pool.hpp"
#include "troupe/http/client.hpp"

namespace troupe::http {

class client_core final : public client_resources {
 public:
  explicit client_core(client_options chosen)
      : client_resources(std::move(chosen)), streams(*this) {}

  stream_pool streams;
};

}  // namespace troupe::http
