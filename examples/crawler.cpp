// crawler: fetches all pages of a site, from its start page on, and reports which links are broken.
//
//     ./run examples/crawler.cpp DIR                       serves that folder itself, on loopback
//     ./run examples/crawler.cpp http://localhost:8080/
//
// The program is a circle. Fetchers, a limited number at a time, put pages into a channel. Behind
// it the links of a few pages at once are found, on all workers, and each new link gets a fetcher.
//
//     fetchers -> channel -> find_links -> new fetchers, until no page is on its way
//
// A page is tried again when it fails for a reason that may pass, while the budget of retries
// lasts. Each page has a deadline, and so has the whole crawl.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/http/client.hpp"
#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"
#include "troupe/troupe.hpp"

namespace http = troupe::http;
namespace streams = troupe::streams;
using namespace std::chrono_literals;

constexpr std::size_t pages_waiting = 16;  // fetched, and their links not found yet

struct Options {
  std::string site;  // a folder or a URL
  unsigned connections = 8, rate = 500, tries = 4, pages = 10'000, slowest = 5;
  unsigned page_ms = 10'000, all_ms = 600'000;
};

// A page on its way around the circle.
struct Page {
  explicit Page(http::url of) : at(std::move(of)) {}
  http::url at;
  std::string html;     // empty for other types
  std::string failure;  // empty: the page is there
  std::uint64_t bytes = 0;
  unsigned retries = 0;
  bool is_redirect = false;
  std::chrono::nanoseconds took{0};    // the last try
  std::vector<std::string> links;      // as they stand in the page, or where it redirects to
  std::set<std::string> targets;       // the URLs of those that lead to a page of the site
  std::set<std::string> bad_links;     // those that are no URLs
  std::set<std::string> leading_away;  // those that lead elsewhere
};

// The values of the attributes href and src.
troupe::generator<std::string> references(std::string_view html) {
  constexpr std::string_view spaces = " \t\r\n\f/";
  const auto cut = [&html](std::size_t end) {
    const std::string_view part = html.substr(0, end);
    html.remove_prefix(part.size());
    return part;
  };
  while (html.find('<') != std::string_view::npos) {
    cut(html.find('<') + 1);
    if (html.starts_with("!--")) cut(html.find("-->"));
    const std::string_view tag = cut(html.find_first_of(" \t\r\n\f/>"));
    for (;;) {
      cut(html.find_first_not_of(spaces));
      if (html.empty() || html.front() == '>') break;
      const std::string_view name = cut(html.find_first_of(" \t\r\n\f/>=", 1));
      cut(html.find_first_not_of(" \t\r\n\f"));
      if (!html.starts_with('=')) continue;
      cut(html.find_first_not_of(" \t\r\n\f", 1));
      const bool quoted = html.starts_with('"') || html.starts_with('\'');
      const char quote = quoted ? html.front() : ' ';
      if (quoted) cut(1);
      std::string value(cut(quoted ? html.find(quote) : html.find_first_of(" \t\r\n\f>")));
      if (quoted) cut(1);
      for (std::size_t at = 0; (at = value.find("&amp;", at)) != std::string::npos; ++at)
        value.replace(at, 5, "&");
      if (http::same_word(name, "href") || http::same_word(name, "src")) co_yield std::move(value);
    }
    if (http::same_word(tag, "script") || http::same_word(tag, "style")) cut(html.find("</"));
  }
}

// Whether a reference is of a scheme that is never fetched, as mailto.
bool is_of_other_scheme(std::string_view reference) {
  const std::size_t end = reference.find_first_of(":/?#");
  if (end == std::string_view::npos || reference[end] != ':') return false;
  const std::string_view scheme = reference.substr(0, end);
  return !http::same_word(scheme, "http") && !http::same_word(scheme, "https");
}

// A task of its own, which any worker runs.
troupe::task<Page> find_links(Page page) {
  for (std::string reference : references(page.html)) page.links.push_back(std::move(reference));
  page.html.clear();
  for (const std::string& link : page.links) {
    if (is_of_other_scheme(link)) {
      page.leading_away.insert(link);
      continue;
    }
    try {
      const http::url to = page.at.resolve(link);
      (to.origin() == page.at.origin() ? page.targets : page.leading_away).insert(to.to_string());
    } catch (const http::client_error&) {
      page.bad_links.insert(link);
    }
  }
  co_return page;
}

struct BadLink {
  std::string page, link, why;
};

struct Report {
  std::map<std::string, std::vector<std::string>> linked_from;  // by URL: the pages with the link
  std::map<std::string, std::string> failures;                  // by URL: why it has no page
  std::vector<BadLink> bad_links;
  std::vector<std::pair<std::chrono::nanoseconds, std::string>> times;
  std::size_t redirects = 0, retries = 0, leading_away = 0;
  std::size_t unfinished = 0;  // pages that were found and not fetched
  std::size_t left_out = 0;    // links to pages beyond the limit
  std::uint64_t bytes = 0;
  std::chrono::nanoseconds took{0};
};

// Its tasks run in the turns of one actor, so nothing here needs a lock.
class Crawl {
 public:
  Crawl(const Options& options, Report& report)
      : options_(options),
        report_(report),
        rate_({.tokens = options.rate, .burst = options.connections}),
        pages_(troupe::channel<Page>::bounded(pages_waiting)),
        web_(client_options(options)) {}

  // Ends when every page was fetched that a link leads to.
  troupe::task<> run(http::url start) {
    auto body = [this, &start](troupe::task_scope& s) { return follow(s, start); };
    co_await troupe::scope(body);
  }

 private:
  static http::client_options client_options(const Options& options) {
    http::client_options limits;
    limits.redirects = 0;  // a redirect is a page with one link
    limits.idle_per_origin = options.connections;
    return limits;
  }

  troupe::task<> follow(troupe::task_scope& s, const http::url& start) {
    s.limit(options_.connections);
    visit(s, start.to_string(), "the start");
    auto begin = [](Page page) { return troupe::spawn(find_links(std::move(page))); };
    auto read = pages_ | streams::map(begin) |
                streams::buffered_unordered(std::max(1u, std::thread::hardware_concurrency()));
    while (auto page = co_await read.next()) {
      for (const std::string& link : page->targets) visit(s, link, page->at.target());
      add(*page);
      if (--report_.unfinished == 0) pages_.close();
    }
  }

  void visit(troupe::task_scope& s, const std::string& link, const std::string& from) {
    const bool is_known = report_.linked_from.contains(link);
    if (!is_known && report_.linked_from.size() == options_.pages) {
      ++report_.left_out;
      return;
    }
    report_.linked_from[link].push_back(from);
    if (is_known) return;
    ++report_.unfinished;
    s.spawn(fetch(Page(http::url::parse(link))));
  }

  // Puts the page into the channel, with what is in it or with the reason why it is not there.
  troupe::task<> fetch(Page page) {
    co_await rate_.acquire();  // before the page's time begins
    troupe::retry_report how;
    const troupe::retry_policy policy{.attempts = options_.tries,
                                      .delay = 50ms,
                                      .delay_max = 2s,
                                      .budget = &budget_,
                                      .report = &how};
    auto attempt = [this, &page](const troupe::retry_attempt& one) {
      return download(page, one.number > 1);
    };
    auto all_attempts = [&] { return troupe::retry(policy, attempt, may_pass); };
    try {
      co_await troupe::with_deadline(options_.page_ms * 1ms, all_attempts);
    } catch (const troupe::cancelled&) {
      throw;
    } catch (const std::exception& failed) {
      page.failure = failed.what();
      if (how.ended == troupe::retry_report::end::budget) page.failure += " (no retry was left)";
    }
    page.retries = how.attempts > 1 ? how.attempts - 1 : 0;
    co_await pages_.send(std::move(page));
  }

  // Whether the same request may succeed a moment later.
  static bool may_pass(const std::exception& failed) {
    const auto* const bad = dynamic_cast<const http::client_error*>(&failed);
    return bad == nullptr || bad->reason() == http::client_failure::closed ||
           bad->reason() == http::client_failure::truncated;
  }

  troupe::task<> download(Page& page, bool is_retry) {
    if (is_retry) co_await rate_.acquire();
    const std::chrono::nanoseconds began = troupe::now();
    http::client_response answer = co_await web_.get(page.at.to_string());
    const int status = answer.status();
    const std::string said = std::to_string(status) + " " + std::string(answer.reason());
    if (status == 429 || status >= 500) throw troupe::try_later(said, retry_after(answer));
    page.bytes = 0;
    if (answer.field("Content-Type").starts_with("text/html")) {
      page.html = co_await answer.read_all();
      page.bytes = page.html.size();
    } else {
      for (;;) {
        const std::string_view piece = co_await answer.read();
        if (piece.empty()) break;
        page.bytes += piece.size();
      }
    }
    page.took = troupe::now() - began;
    if (answer.ok()) co_return;
    page.html.clear();
    if (status / 100 == 3 && answer.fields().has("Location")) {
      page.is_redirect = true;
      page.links.emplace_back(answer.field("Location"));
    } else {
      page.failure = said;
    }
  }

  static std::chrono::seconds retry_after(const http::client_response& answer) {
    const std::string_view text = answer.field("Retry-After");
    unsigned seconds = 0;  // also where it is a date
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return std::chrono::seconds(seconds);
  }

  void add(const Page& page) {
    report_.retries += page.retries;
    report_.bytes += page.bytes;
    report_.leading_away += page.leading_away.size();
    for (const std::string& link : page.bad_links)
      report_.bad_links.push_back({page.at.target(), link, "this is no URL"});
    if (!page.failure.empty()) {
      report_.failures.emplace(page.at.to_string(), page.failure);
    } else if (page.is_redirect) {
      ++report_.redirects;
    } else {
      report_.times.emplace_back(page.took, page.at.target());
    }
  }

  const Options& options_;
  Report& report_;
  const troupe::rate_limiter rate_;
  const troupe::retry_budget budget_;
  const troupe::channel<Page> pages_;
  const http::client web_;
};

troupe::task<> crawl(const Options& options, http::url start, Report& report) {
  const std::chrono::nanoseconds began = troupe::now();
  Crawl all(options, report);
  auto run = [&all, &start] { return all.run(start); };
  try {
    co_await troupe::with_deadline(options.all_ms * 1ms, run);
  } catch (const troupe::timed_out&) {
    // The report says how many pages are missing.
  }
  report.took = troupe::now() - began;
}

troupe::task<> serve_and_crawl(const Options& options, Report& report) {
  http::router routes;
  routes.files("/", options.site);
  http::server web(std::move(routes));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const http::url start = http::url::parse("http://" + listener.local().to_string());
  auto body = [&](troupe::task_scope& s) -> troupe::task<> {
    s.spawn(web.serve(std::move(listener)));
    co_await crawl(options, start, report);
    web.stop();
  };
  co_await troupe::scope(body);
}

bool is_url(std::string_view site) { return site.find("://") != std::string_view::npos; }

double seconds(std::chrono::nanoseconds span) {
  return std::chrono::duration<double>(span).count();
}

void print(Report& report, const Options& options) {
  std::cout << std::fixed << std::setprecision(3) << report.times.size() << " pages, "
            << report.redirects << " redirects, " << report.bytes << " bytes, " << report.retries
            << " retries, " << report.leading_away << " links to elsewhere, "
            << seconds(report.took) << " s\n";
  if (report.unfinished > 0)
    std::cout << "the time was over: " << report.unfinished << " pages were not fetched\n";
  if (report.left_out > 0)
    std::cout << "too many pages: " << report.left_out << " links were not followed\n";
  for (const auto& [url, why] : report.failures) {
    for (const std::string& page : report.linked_from[url])
      report.bad_links.push_back({page, http::url::parse(url).target(), why});
  }
  std::cout << (report.bad_links.empty() ? "no broken links\n" : "broken links:\n");
  for (const auto& [page, link, why] : report.bad_links)
    std::cout << "  " << page << " -> " << link << ": " << why << '\n';
  std::ranges::sort(report.times, std::greater());
  std::cout << "slowest pages:\n";
  for (const auto& [took, page] : report.times | std::views::take(options.slowest))
    std::cout << "  " << seconds(took) << " s " << page << '\n';
}

constexpr const char* usage =
    "usage: crawler [OPTION N]... DIR|URL\n"
    "  --connections N  at a time (default 8)\n"
    "  --rate N         requests a second (default 500)\n"
    "  --tries N        of a page that fails (default 4)\n"
    "  --page-time N    milliseconds for a page with its retries (default 10000)\n"
    "  --time N         milliseconds for all (default 600000)\n"
    "  --pages N        that are fetched at most (default 10000)\n"
    "  --slowest N      pages of the report (default 5)\n"
    "Ends with 0 if all pages were fetched; with 1 if a link is broken or a limit was reached; "
    "with\n"
    "2 if it could not begin.\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

unsigned read_number(std::string_view text) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed == std::errc() && rest == end && number >= 1 && number <= 1'000'000'000) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from 1 to 1000000000");
}

Options parse(std::span<char* const> words) {
  Options chosen;
  const std::map<std::string_view, unsigned*> numbers = {{"--connections", &chosen.connections},
                                                         {"--rate", &chosen.rate},
                                                         {"--tries", &chosen.tries},
                                                         {"--page-time", &chosen.page_ms},
                                                         {"--time", &chosen.all_ms},
                                                         {"--pages", &chosen.pages},
                                                         {"--slowest", &chosen.slowest}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with('-')) {
      if (!chosen.site.empty()) throw WrongUse("there are two sites");
      chosen.site = word;
      continue;
    }
    const auto number = numbers.find(word);
    if (number == numbers.end()) throw WrongUse("there is no option '" + std::string(word) + "'");
    if (++i == words.size()) throw WrongUse(std::string(word) + " wants a number");
    *number->second = read_number(words[i]);
  }
  if (chosen.site.empty()) throw WrongUse("which folder or URL?");
  return chosen;
}

int main(int argc, char** argv) try {
  const Options options =
      parse(std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(1));
  Report report;
  troupe::runtime rt;
  auto done = is_url(options.site)
                  ? rt.spawn(crawl(options, http::url::parse(options.site), report))
                  : rt.spawn(serve_and_crawl(options, report));
  rt.run();
  done.get();
  print(report, options);
  const bool all_is_well = report.failures.empty() && report.bad_links.empty() &&
                           report.unfinished == 0 && report.left_out == 0;
  return all_is_well ? 0 : 1;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "crawler: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "crawler: " << failure.what() << '\n';
  return 2;
}
