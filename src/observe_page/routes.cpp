#include "observe_page/routes.hpp"

#include <chrono>
#include <utility>

#include "base/text/json_text.hpp"
#include "observe_page/metrics_text.hpp"
#include "observe_page/page_text.hpp"
#include "observe_page/trace.hpp"
#include "troupe/http/writer.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::observe_page {
namespace {

using shared_cache = std::shared_ptr<answer_cache>;

std::string value_of(const http::request& asked, std::string_view name, std::string otherwise) {
  return asked.query_value(name).value_or(std::move(otherwise));
}

// A question is one line: the text of the query must not end it.
bool is_line(std::string_view question) noexcept {
  return question.find('\n') == std::string_view::npos;
}

task<http::response> answer(shared_cache cache, std::string question) {
  std::optional<http::response> made;
  if (!is_line(question)) {
    made = refusal(400, "a question is one line\n");
    co_return std::move(*made);
  }
  try {
    const auto text = co_await answer_cache::to(cache, std::move(question));
    made = http::response::json(*text).field("Cache-Control", "no-store");
  } catch (const no_answer& failed) {
    made = refusal(503, failed.what());
  }
  co_return std::move(*made);
}

task<http::response> metrics(shared_cache cache, metrics_format format) {
  std::optional<http::response> made;
  try {
    const auto numbers = co_await answer_cache::to(cache, "numbers");
    made = http::response::owned(as_metrics(*numbers, format),
                                 http::content_type::of_table(type_of(format)))
               .field("Vary", "Accept");
  } catch (const std::runtime_error& failed) {
    made = refusal(503, failed.what());
  }
  co_return std::move(*made);
}

// All that belongs to one moment, as one object.
task<std::string> moment(shared_cache cache, std::string runtime) {
  base::json_text text;
  text.open('{');
  const std::pair<const char*, std::string> parts[] = {{"summary", "summary"},
                                                       {"longest", "longest " + runtime + " 10"},
                                                       {"waits", "waits " + runtime},
                                                       {"threads", "threads " + runtime},
                                                       {"numbers", "numbers components"}};
  for (const auto& [name, question] : parts) {
    const auto part = co_await answer_cache::to(cache, question);
    text.key(name).raw(*part);
  }
  // A page reads the looks of five minutes once, and the newest ones with each moment.
  std::string recent = "null";
  try {
    const auto part = co_await answer_cache::to(cache, "history " + runtime + " 0 5");
    recent = *part;
  } catch (const no_answer&) {  // a program of an earlier version keeps none
  }
  text.key("history").raw(recent).close('}');
  co_return std::move(text).take();
}

// A moment each second, until the program ends or the reader has disconnected.
task<> send_moments(http::event_writer& writer, shared_cache cache, std::string runtime) {
  for (;;) {
    http::event_message message;
    try {
      message.data = co_await moment(cache, runtime);
    } catch (const no_answer& failed) {
      message.event = "ended";
      message.data = "{}";
    }
    const bool is_last = !message.event.empty();
    co_await writer.send(std::move(message));
    if (is_last) co_return;
    co_await sleep_for(std::chrono::seconds(1));
  }
}

// One file, which loads nothing from elsewhere.
std::string page_text() {
  std::string text(page_frame);
  for (const auto& [mark, part] : page_parts) text.replace(text.find(mark), mark.size(), part);
  return text;
}

http::response page() {
  return http::response::html(page_text())
      .field("Content-Security-Policy",
             "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
      .field("X-Content-Type-Options", "nosniff")
      .field("Referrer-Policy", "no-referrer")
      .field("Cache-Control", "no-store");
}

}  // namespace

void add_routes(http::router& routes, const std::string& folder, const std::string& metrics_path,
                const shown_program& program, const guard& refuses) {
  const auto& cache = program.answers;
  routes.get(folder, [refuses](const http::request& asked) {
    auto refused = refuses(asked);
    return refused ? std::move(*refused) : page();
  });
  routes.get(folder + "events", [cache, refuses](const http::request& asked) {
    if (auto refused = refuses(asked)) return std::move(*refused);
    std::string runtime = value_of(asked, "runtime", "0");
    if (!is_line(runtime)) return refusal(400, "a question is one line\n");
    return http::response::events(
        [cache, runtime = std::move(runtime)](http::event_writer& events) {
          return send_moments(events, cache, runtime);
        });
  });
  // The requests of a click.
  const auto add = [&](const char* path, auto question) {
    routes.get(folder + path,
               [cache, refuses, question](const http::request& asked) -> task<http::response> {
                 if (auto refused = refuses(asked)) co_return std::move(*refused);
                 co_return co_await answer(cache, question(asked));
               });
  };
  const auto of_class = [](const http::request& asked) {
    const std::string name = value_of(asked, "class", "");
    return name.empty() ? name : " " + name;
  };
  add("dump", [](const http::request&) { return std::string("dump"); });
  add("longest", [of_class](const http::request& asked) {
    return "longest " + value_of(asked, "runtime", "0") + " 100" + of_class(asked);
  });
  add("actors", [of_class](const http::request& asked) {
    return "actors " + value_of(asked, "runtime", "0") + " " + value_of(asked, "from", "0") +
           " 100" + of_class(asked);
  });
  add("history", [](const http::request& asked) {
    return "history " + value_of(asked, "runtime", "0") + " " + value_of(asked, "ago", "0") + " " +
           value_of(asked, "seconds", "300");
  });
  add("actor", [](const http::request& asked) {
    return "actor " + value_of(asked, "runtime", "0") + " " + value_of(asked, "id", "");
  });
  routes.get(
      folder + "trace",
      [socket = program.socket, refuses](const http::request& asked) -> task<http::response> {
        if (auto refused = refuses(asked)) co_return std::move(*refused);
        co_return co_await trace(socket, value_of(asked, "seconds", ""), asked.client_gone());
      });
  routes.get(metrics_path, [cache, refuses](const http::request& asked) -> task<http::response> {
    if (auto refused = refuses(asked)) co_return std::move(*refused);
    co_return co_await metrics(cache, preferred_format(asked.field("Accept")));
  });
}

}  // namespace troupe::observe_page
