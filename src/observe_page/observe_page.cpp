#include "troupe/observe_page/observe_page.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "observe_page/access.hpp"
#include "observe_page/answer_cache.hpp"
#include "observe_page/routes.hpp"
#include "runtime/observing/observer.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"

namespace troupe {
namespace {

using observe_page::refusal;

constexpr const char* unobserved =
    "this program is not observed: set runtime_options::observe, or start it with "
    "TROUPE_OBSERVE=1\n";

std::string socket_here() {
  std::string path = observing::socket_path();
  if (path.empty()) throw observe_page::no_answer(unobserved);
  return path;
}

std::string ask_here(const std::string& question) {
  std::string text = observing::ask(question);
  constexpr std::string_view nothing = "\"runtimes\":[]";
  if (text.find(nothing) != std::string::npos) throw observe_page::no_answer(unobserved);
  return text;
}

void check(const observe_page_options& options) {
  const std::string& folder = options.folder;
  if (folder.empty() || folder.front() != '/' || folder.back() != '/')
    throw option_error("troupe: observe_page_options::folder is '" + folder +
                       "': it begins and ends with '/'");
  if (!options.token.empty() && options.token.size() < observe_page_options::token_bytes_min)
    throw option_error("troupe: observe_page_options::token has " +
                       std::to_string(options.token.size()) + " bytes: it takes at least " +
                       std::to_string(observe_page_options::token_bytes_min) +
                       ", else it could be guessed");
  for (const std::string& name : options.hosts) {
    if (name.empty() || name.find_first_of(":/@ \t\r\n") != std::string::npos)
      throw option_error("troupe: observe_page_options::hosts has '" + name +
                         "': each is the name of a host, without scheme and port");
  }
}

}  // namespace

void add_observe_page(http::router& routes, const observe_page_options& options) {
  check(options);
  const auto readers = std::make_shared<observe_page::access>(options.token, options.hosts);
  const auto refuses = [readers](const http::request& asked) { return readers->refuse(asked); };
  const observe_page::shown_program here{std::make_shared<observe_page::answer_cache>(&ask_here),
                                         &socket_here};
  observe_page::add_routes(routes, options.folder, "/metrics", here, refuses);
  routes.note_page(options.folder);
  routes.get("/healthz", [] { return http::response::text("ok\n"); });
  routes.get("/readyz", [is_ready = options.is_ready](const http::request& asked) {
    const bool stops = asked.stopping().stop_requested();
    if (!stops && (!is_ready || is_ready())) return http::response::text("ready\n");
    return refusal(503, stops ? "the server stops\n" : "not ready\n");
  });
}

}  // namespace troupe
