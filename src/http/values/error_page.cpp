#include "troupe/http/values/error_page.hpp"

#include <array>
#include <string>
#include <utility>

#include "base/text/json_text.hpp"
#include "http/values/page_of.hpp"
#include "troupe/http/values/accept.hpp"

namespace troupe::http {

namespace {

constexpr std::string_view problem_type = "application/problem+json";

bool wants_problem(const http::fields& fields) {
  constexpr std::array<std::string_view, 3> types{"text/plain", problem_type, "application/json"};
  const auto best = preferred_type(fields.list("Accept"), types);  // text wins a tie of wildcards
  return best && *best != 0;
}

}  // namespace

response page_of(const http::fields& fields, int status, std::string_view detail) {
  const std::string_view title = reason_of(status);
  if (!wants_problem(fields)) {
    response text =
        response::owned(std::string(detail.empty() ? title : detail) + "\n", "text/plain");
    if (fields.has("Accept")) text.field("Vary", "Accept");
    return std::move(text).status(status);
  }
  base::json_text problem;
  problem.open('{').member("type", "about:blank").member("title", title).member("status", status);
  if (!detail.empty()) problem.member("detail", detail);
  problem.close('}');
  return response::owned(std::move(problem).take() + "\n", content_type::of_table(problem_type))
      .status(status)
      .field("Vary", "Accept");
}

response error_page(const request& asked, int status, std::string_view detail) {
  return page_of(asked.fields(), status, detail);
}

}  // namespace troupe::http
