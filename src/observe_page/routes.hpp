// routes: the page and its requests, for a server of the program itself or of the tool
// `troupe`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "observe_page/answer_cache.hpp"
#include "observe_page/refusal.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/router.hpp"

namespace troupe::observe_page {

// Returns the answer to a request that may not see the page; nullopt: it may.
using guard = std::function<std::optional<http::response>(const http::request&)>;

// The program whose page it is.
struct shown_program {
  std::shared_ptr<answer_cache> answers;
  // The path of its socket, for requests that take long. Throws no_answer if there is none.
  std::function<std::string()> socket;
};

// Adds the page at `folder`, which ends with '/', and below it the paths that the page requests;
// and metrics at `metrics`.
void add_routes(http::router& routes, const std::string& folder, const std::string& metrics,
                const shown_program& program, const guard& refuses);

}  // namespace troupe::observe_page
