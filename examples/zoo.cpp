// zoo: a program to look into while it runs. Twenty of its 100,000 animals make trouble.
//
//     ./run examples/zoo.cpp --seconds 60
//     troupe page PID      # and, elsewhere: troupe top PID
//
// Each animal is an actor, and keepers feed some of them all the time. Among them hide, by name:
//   sloth     its handler blocks its thread for 20 ms each time
//   hippo     one of 500 of its messages computes for 20 ms
//   squirrel  its handler spins without end, on a worker of its own
//   snake     it digests so slowly that its mailbox grows
//   parrot    it and a mynah ask each other without end. Both are reentrant, so this is no
//             deadlock: each answers once the other has, and one more call waits each time
//   wolf      the same with three: it asks a fox, which asks a hen, which asks the wolf
//   bat       it asks an owl, which sleeps
//   bear      it hibernates while it holds the lock of a den, for which badgers wait
//   spider    each fly waits in its web for a promise that is not kept: ever more calls wait
//   penguin   two of them keep both nests of a pool, for which the others wait
//   elephant  six of them block all the threads for blocking calls
//   moth      its handler throws
//   dodo      it has ended, and still gets mail
//   rabbit    there are more and more of them
//   magpie    it opens descriptors and closes none
//   mayfly    20,000 of their timers are due at once
//   tortoise  a page of an HTTP server takes 1.2 s
//   locust    one client connects to a server again and again, more often than that allows
//   termite   a statement of SQLite takes some 300 ms
//   pigeon    the collector of the program's spans is away
//
// `--troubles sloth,snake` chooses some of them, `--troubles none` leaves all of them out. It runs
// until SIGINT or SIGTERM comes, or for the given time, and prints how often it has fed.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/http/client.hpp"
#include "troupe/http/server.hpp"
#include "troupe/otlp/exporter.hpp"
#include "troupe/sqlite/connection.hpp"
#include "troupe/troupe.hpp"

using namespace std::chrono_literals;

constexpr int animals_min = 100, animals_max = 10'000'000, seconds_max = 1'000'000;
constexpr auto feeding_time = 10ms;   // between two rounds of a keeper
constexpr int fed_at_once = 20;       // animals of one round
constexpr auto climbing_time = 20ms;  // the thread can do nothing else meanwhile
constexpr auto digestion_time = 1s;   // of one mouse; the snake gets one with each feeding
constexpr auto breath = 20ms;         // before an animal asks another one
constexpr auto night = 24h;

// What the troubles share.
struct Zoo {
  troupe::runtime& rt;
  std::vector<troupe::timer> rounds{};
  std::vector<int> shiny{};  // descriptors
  std::vector<std::function<void()>> closing{};
  std::atomic<bool> is_closed = false;
  std::optional<troupe::otlp::exporter> spans{};
  template <class Round>
  void every(troupe::time_span period, Round round) {
    rounds.push_back(rt.every(period, std::move(round)));
  }
};

// The harmless ones: what each of them does takes well below a microsecond.
struct Ant {
  std::int64_t eaten = 0;
  void eat(int crumbs) { eaten += crumbs; }
};
struct Fish {
  std::int64_t eaten = 0;
  void eat(int flakes) { eaten += flakes; }
};

// ---- handlers that hold their threads ----

struct Sloth {
  void climb() {
    const troupe::trace_span span("hang");
    // sleeps: it stands for a call that blocks, which a handler should leave to troupe::blocking
    std::this_thread::sleep_for(climbing_time);
  }
};
void bring_sloth(Zoo& zoo) {
  const auto sloth = zoo.rt.spawn<Sloth>();
  zoo.every(2 * climbing_time, [=] { sloth.tell<&Sloth::climb>(); });
}

struct Hippo {
  int grazed = 0;
  void graze() {
    constexpr int bites = 500;
    if (++grazed % bites != 0) return;
    const auto until = std::chrono::steady_clock::now() + climbing_time;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
};
void bring_hippo(Zoo& zoo) {
  const auto hippo = zoo.rt.spawn<Hippo>();
  zoo.every(1ms, [=] { hippo.tell<&Hippo::graze>(); });
}

struct Squirrel {
  std::shared_ptr<std::atomic<bool>> tired;
  void run_in_wheel() {
    // order: relaxed  a hint; nothing else is published
    while (!tired->load(std::memory_order_relaxed)) {
    }
  }
};
void bring_squirrel(Zoo& zoo) {
  const auto tired = std::make_shared<std::atomic<bool>>(false);
  // order: relaxed  as above
  zoo.closing.push_back([=] { tired->store(true, std::memory_order_relaxed); });
  zoo.rt.spawn<Squirrel>(tired).tell<&Squirrel::run_in_wheel>();
}

// ---- waits ----

struct Snake {
  int swallowed = 0;
  troupe::task<> swallow(int mice) {
    co_await troupe::sleep_for(digestion_time);  // holds no thread, but the snake's other mail
    swallowed += mice;
  }
};
void bring_snake(Zoo& zoo) {
  const auto snake = zoo.rt.spawn<Snake>();
  zoo.every(feeding_time, [=] { snake.tell<&Snake::swallow>(1); });
}

struct Mynah;
struct Parrot {
  static constexpr bool reentrant = true;
  troupe::ref<Mynah> other;
  void meet(troupe::ref<Mynah> one) { other = std::move(one); }
  troupe::task<int> repeat(int words);
};
struct Mynah {
  static constexpr bool reentrant = true;
  troupe::ref<Parrot> other;
  troupe::task<int> repeat(int words) {
    co_await troupe::sleep_for(breath);
    co_return co_await other.ask<&Parrot::repeat>(words);
  }
};
troupe::task<int> Parrot::repeat(int words) {
  co_await troupe::sleep_for(breath);
  co_return co_await other.ask<&Mynah::repeat>(words);
}
void bring_parrot(Zoo& zoo) {
  const auto parrot = zoo.rt.spawn<Parrot>();
  parrot.tell<&Parrot::meet>(zoo.rt.spawn<Mynah>(parrot));
  parrot.tell<&Parrot::repeat>(2);
}

struct Fox;
struct Hen;
struct Wolf {
  static constexpr bool reentrant = true;
  troupe::ref<Fox> next;
  void meet(troupe::ref<Fox> fox) { next = std::move(fox); }
  troupe::task<int> flee();
};
struct Hen {
  static constexpr bool reentrant = true;
  troupe::ref<Wolf> next;
  troupe::task<int> flee() {
    co_await troupe::sleep_for(breath);
    co_return co_await next.ask<&Wolf::flee>();
  }
};
struct Fox {
  static constexpr bool reentrant = true;
  troupe::ref<Hen> next;
  troupe::task<int> flee() { co_return co_await next.ask<&Hen::flee>(); }
};
troupe::task<int> Wolf::flee() { co_return co_await next.ask<&Fox::flee>(); }
void bring_wolf(Zoo& zoo) {
  const auto wolf = zoo.rt.spawn<Wolf>();
  wolf.tell<&Wolf::meet>(zoo.rt.spawn<Fox>(zoo.rt.spawn<Hen>(wolf)));
  wolf.tell<&Wolf::flee>();
}

struct Owl {
  troupe::task<int> wake() {
    co_await troupe::sleep_for(night);
    co_return 0;
  }
};
struct Bat {
  troupe::ref<Owl> owl;
  troupe::task<> call() { co_await owl.ask<&Owl::wake>(); }
};
void bring_bat(Zoo& zoo) { zoo.rt.spawn<Bat>(zoo.rt.spawn<Owl>()).tell<&Bat::call>(); }

struct Bear {
  std::shared_ptr<troupe::mutex> den;
  troupe::task<> hibernate() {
    const auto held = co_await den->lock();
    co_await troupe::sleep_for(night);
  }
};
struct Badger {
  std::shared_ptr<troupe::mutex> den;
  troupe::task<> enter() { const auto held = co_await den->lock(); }
};
void bring_bear(Zoo& zoo) {
  constexpr int badgers = 3;
  const auto den = std::make_shared<troupe::mutex>();
  zoo.rt.spawn<Bear>(den).tell<&Bear::hibernate>();
  zoo.rounds.push_back(zoo.rt.after(breath, [&zoo, den] {
    for (int i = 0; i < badgers; ++i) zoo.rt.spawn<Badger>(den).tell<&Badger::enter>();
  }));
}

struct Spider {
  static constexpr bool reentrant = true;
  std::vector<troupe::promise<>> web{};
  troupe::task<> catch_fly() {
    web.emplace_back();
    troupe::future<> freed = web.back().get_future();
    co_await std::move(freed);
  }
};
void bring_spider(Zoo& zoo) {
  const auto spider = zoo.rt.spawn<Spider>();
  zoo.every(feeding_time, [=] {
    for (int i = 0; i < fed_at_once; ++i) spider.tell<&Spider::catch_fly>();
  });
}

struct Nest {};
using Nests = troupe::pool<Nest>;
struct Penguin {
  Nests nests;
  troupe::task<> breed() {
    const auto nest = co_await nests.borrow();
    co_await troupe::sleep_for(night);
  }
};
void bring_penguin(Zoo& zoo) {
  constexpr int penguins = 5;
  const Nests nests({.max = 2}, [] { return Nest(); });
  for (int i = 0; i < penguins; ++i) zoo.rt.spawn<Penguin>(nests).tell<&Penguin::breed>();
  const auto shown = std::make_shared<troupe::shown_numbers>("nests", nests);
  zoo.closing.push_back([shown] {});
}

struct Elephant {
  troupe::task<> bathe() {
    for (;;) {
      co_await troupe::blocking([] { std::this_thread::sleep_for(10 * climbing_time); });
    }
  }
};
constexpr unsigned baths = 4;  // threads for blocking calls
void bring_elephant(Zoo& zoo) {
  for (unsigned i = 0; i < baths + 2; ++i) zoo.rt.spawn<Elephant>().tell<&Elephant::bathe>();
}

// ---- failures and leaks ----

struct Burnt : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Moth {
  void fly() { throw Burnt("the lamp is hot"); }
};
void bring_moth(Zoo& zoo) {
  const auto moth = zoo.rt.spawn<Moth>();
  zoo.every(10 * feeding_time, [=] { moth.tell<&Moth::fly>(); });
}

struct Dodo {
  void feed() {}
};
void bring_dodo(Zoo& zoo) {
  const auto dodo = zoo.rt.spawn<Dodo>();
  dodo.stop();
  zoo.every(feeding_time, [=] { dodo.tell<&Dodo::feed>(); });
}

struct Rabbit {
  int carrots = 0;
  void eat(int more) { carrots += more; }
};
void bring_rabbit(Zoo& zoo) {
  const auto warren = std::make_shared<std::vector<troupe::ref<Rabbit>>>();
  zoo.every(feeding_time, [&zoo, warren] {
    for (int i = 0; i < 2; ++i) warren->push_back(zoo.rt.spawn<Rabbit>());
    warren->back().tell<&Rabbit::eat>(1);
  });
}

void bring_magpie(Zoo& zoo) {
  constexpr ::rlim_t limit = 1000;
  constexpr std::size_t kept = 930, at_once = 100;
  ::rlimit all{};
  if (::getrlimit(RLIMIT_NOFILE, &all) != 0) return;
  all.rlim_cur = std::min(all.rlim_max, limit);
  if (::setrlimit(RLIMIT_NOFILE, &all) != 0) return;
  zoo.every(10 * feeding_time, [&zoo] {
    for (std::size_t i = 0; i < at_once && zoo.shiny.size() < kept; ++i) {
      const int found = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (found < 0) return;
      zoo.shiny.push_back(found);
    }
  });
}

troupe::task<> fly_once(std::chrono::steady_clock::time_point at) {
  co_await troupe::sleep_for(at - std::chrono::steady_clock::now());
}
void bring_mayfly(Zoo& zoo) {
  constexpr int mayflies = 20'000;
  zoo.every(1s, [&zoo] {
    const auto dusk = std::chrono::steady_clock::now() + 900ms;
    for (int i = 0; i < mayflies; ++i) zoo.rt.spawn(fly_once(dusk));
  });
}

// ---- servers, databases, collectors ----

// Serves on a port of its own, which it returns.
std::uint16_t open_kiosk(Zoo& zoo, troupe::http::server web) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const std::uint16_t port = listener.local().port();
  zoo.closing.push_back([web] { web.stop(); });
  zoo.rt.spawn(web.serve(std::move(listener)));
  return port;
}

troupe::task<> visit_tortoise(std::uint16_t port) {
  troupe::http::client browser;
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/tortoise";
  for (;;) {
    troupe::http::client_response answer = co_await browser.get(url);
    static_cast<void>(co_await answer.read_all());
  }
}
void bring_tortoise(Zoo& zoo) {
  troupe::http::router routes;
  routes.get("/tortoise", []() -> troupe::task<troupe::http::response> {
    co_await troupe::sleep_for(1200ms);
    co_return troupe::http::response::text("it comes\n");
  });
  zoo.rt.spawn(visit_tortoise(open_kiosk(zoo, troupe::http::server(std::move(routes)))));
}

constexpr std::size_t welcome_locusts = 4;
troupe::task<> swarm(std::uint16_t port) {
  for (;;) {
    std::vector<troupe::tcp_stream> all;
    for (std::size_t i = 0; i < 2 * welcome_locusts; ++i)
      all.push_back(co_await troupe::tcp_stream::connect(troupe::endpoint::loopback(port)));
    co_await troupe::sleep_for(200ms);
  }
}
void bring_locust(Zoo& zoo) {
  troupe::http::router routes;
  routes.get("/field", [] { return troupe::http::response::text("wheat\n"); });
  troupe::http::server_options options;
  options.connections_per_peer = welcome_locusts;
  zoo.rt.spawn(swarm(open_kiosk(zoo, troupe::http::server(std::move(routes), options))));
}

troupe::task<> gnaw(troupe::sqlite::connection wood) {
  constexpr int bites = 1'000'000;
  for (;;) {
    static_cast<void>(co_await wood.query_one<std::int64_t>(
        "WITH RECURSIVE bites(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM bites WHERE n < ?) "
        "SELECT count(*) FROM bites",
        bites));
    co_await troupe::sleep_for(600ms);
  }
}
void bring_termite(Zoo& zoo) { zoo.rt.spawn(gnaw(troupe::sqlite::connection(zoo.rt, ":memory:"))); }

troupe::task<> post_letters() {
  for (;;) {
    co_await troupe::with_span("letter", troupe::sleep_for(5 * breath));
  }
}
void bring_pigeon(Zoo& zoo) {
  troupe::otlp::exporter_options options;
  options.service_name = "zoo";
  options.flush_time = 100ms;
  options.url = "http://127.0.0.1:1/v1/traces";  // a port that is always closed
  zoo.spans.emplace(std::move(options));
  zoo.rt.spawn(post_letters());
}

struct Trouble {
  std::string_view name;
  void (*bring)(Zoo&);
};
constexpr Trouble troubles[] = {
    {"sloth", bring_sloth},     {"hippo", bring_hippo},       {"squirrel", bring_squirrel},
    {"snake", bring_snake},     {"parrot", bring_parrot},     {"wolf", bring_wolf},
    {"bat", bring_bat},         {"bear", bring_bear},         {"spider", bring_spider},
    {"penguin", bring_penguin}, {"elephant", bring_elephant}, {"moth", bring_moth},
    {"dodo", bring_dodo},       {"rabbit", bring_rabbit},     {"magpie", bring_magpie},
    {"mayfly", bring_mayfly},   {"tortoise", bring_tortoise}, {"locust", bring_locust},
    {"termite", bring_termite}, {"pigeon", bring_pigeon}};

// ---- the zoo ----

// Feeds some animals of one class in each round.
template <class Animal>
class Keeper {
 public:
  Keeper(std::size_t count, unsigned seed) : random_(seed) {
    animals_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) animals_.push_back(troupe::spawn<Animal>());
  }
  void feed() {
    for (int i = 0; i < fed_at_once; ++i)
      animals_[random_() % animals_.size()].template tell<&Animal::eat>(1);
    fed_ += fed_at_once;
  }
  std::int64_t fed() const { return fed_; }

 private:
  std::vector<troupe::ref<Animal>> animals_;
  std::mt19937 random_;
  std::int64_t fed_ = 0;
};

// Closes the zoo once, whether a signal came or the time is over.
class Gate {
 public:
  Gate(Zoo& zoo, troupe::ref<Keeper<Ant>> ants, troupe::ref<Keeper<Fish>> fish)
      : zoo_(zoo), ants_(std::move(ants)), fish_(std::move(fish)) {}
  troupe::task<> close() {
    const std::int64_t ants = co_await ants_.ask<&Keeper<Ant>::fed>();
    const std::int64_t fish = co_await fish_.ask<&Keeper<Fish>::fed>();
    std::cout << "fed " << ants << " ants and " << fish << " fish" << std::endl;
    // order: relaxed  run() returns after it, which orders more
    zoo_.is_closed.store(true, std::memory_order_relaxed);
    for (const auto& close : zoo_.closing) close();
    zoo_.rt.stop(troupe::stop_mode::discard);  // the birds would never end
  }

 private:
  Zoo& zoo_;
  troupe::ref<Keeper<Ant>> ants_;
  troupe::ref<Keeper<Fish>> fish_;
};

troupe::task<> close_by_signal(troupe::ref<Gate> gate) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  std::cout << "the zoo is open; look into it with: troupe page " << ::getpid() << std::endl;
  co_await signals.next();
  gate.tell<&Gate::close>();
}

struct Options {
  int animals = 100'000;
  int seconds = 0;  // 0: until a signal comes
  std::vector<Trouble> troubles{std::begin(::troubles), std::end(::troubles)};
};

troupe::runtime_options options_for(const Options& chosen) {
  constexpr unsigned workers = 4;  // the squirrel keeps one of them, and the sloth half of one
  troupe::runtime_options options;
  options.observe = true;
  options.blocking_threads = baths;
  if (!chosen.troubles.empty()) {
    options.workers = std::max(workers, std::thread::hardware_concurrency());
    options.warnings.timer = 5ms;
  }
  options.on_error = [](const troupe::failure&) {};  // the moth would fill the screen
  return options;
}

void open_zoo(const Options& chosen) {
  troupe::runtime rt(options_for(chosen));
  Zoo zoo{rt};
  const auto half = static_cast<std::size_t>(chosen.animals) / 2;
  const auto ants = rt.spawn<Keeper<Ant>>(half, 1U);
  const auto fish = rt.spawn<Keeper<Fish>>(half, 2U);
  zoo.every(feeding_time, [=] {
    ants.tell<&Keeper<Ant>::feed>();
    fish.tell<&Keeper<Fish>::feed>();
  });
  for (const Trouble& trouble : chosen.troubles) trouble.bring(zoo);
  const auto gate = rt.spawn<Gate>(zoo, ants, fish);
  rt.spawn(close_by_signal(gate));
  if (chosen.seconds != 0)
    rt.after(std::chrono::seconds(chosen.seconds), [=] { gate.tell<&Gate::close>(); });
  try {
    rt.run();
  } catch (const std::exception&) {
    // Those of the moth, and of the asks that the end has cancelled, are no failures of the zoo.
    // order: relaxed  as in Gate::close
    if (!zoo.is_closed.load(std::memory_order_relaxed)) throw;
  }
}

constexpr const char* usage =
    "usage: zoo [--seconds S] [--animals N] [--troubles NAMES]\n"
    "  --seconds S  how long it is open, 1 to 1000000 (default: until SIGINT or SIGTERM comes)\n"
    "  --animals N  how many ants and fish live there, 100 to 10000000 (default 100000)\n"
    "  --troubles NAMES  those that make trouble, with commas between them, or none (default:\n"
    "               all): sloth hippo squirrel snake parrot wolf bat bear spider penguin elephant\n"
    "               moth dodo rabbit magpie mayfly tortoise locust termite pigeon\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_number(std::string_view text, int least, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad == std::errc{} && rest == end && number >= least && number <= most) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

std::vector<Trouble> read_troubles(std::string_view names) {
  std::vector<Trouble> chosen;
  if (names == "none") return chosen;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto* const found = std::ranges::find(troubles, name, &Trouble::name);
    if (found == std::end(troubles))
      throw WrongUse("there is no trouble '" + std::string(name) + "'");
    chosen.push_back(*found);
  }
  return chosen;
}

Options parse(int argc, char** argv) {
  Options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word != "--seconds" && word != "--animals" && word != "--troubles")
      throw WrongUse("there is no option '" + std::string(word) + "'");
    if (++i == argc) throw WrongUse(std::string(word) + " wants a value");
    if (word == "--troubles") {
      chosen.troubles = read_troubles(argv[i]);
    } else if (word == "--seconds") {
      chosen.seconds = read_number(argv[i], 1, seconds_max);
    } else {
      chosen.animals = read_number(argv[i], animals_min, animals_max);
    }
  }
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  open_zoo(parse(argc, argv));
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "zoo: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "zoo: " << failure.what() << '\n';
  return 1;
}
