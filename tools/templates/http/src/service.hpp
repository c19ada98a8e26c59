// service: a web server that greets its visitors, and counts them.
#pragma once

#include <map>
#include <string>
#include <troupe/actors.hpp>
#include <troupe/http.hpp>

// An actor: requests come on all threads, and it handles one message at a time. It needs no lock.
struct Visits {
  std::map<std::string, int> counts;

  // Returns how often this visitor has come.
  int add(const std::string& name);
};

// GET /hello/NAME
troupe::http::router make_routes(troupe::ref<Visits> visits);
