// troupe: looks into running programs that were started with TROUPE_OBSERVE=1, into the databases
// of durable actors, and into sources. See docs/guide/observing.md, or `troupe --help`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

#include "lint/command.hpp"
#include "observe_page/metrics.hpp"
#include "page.hpp"
#include "program.hpp"
#include "store.hpp"
#include "tables.hpp"
#include "top.hpp"
#include "trace_file.hpp"
#include "trust/place.hpp"
#include "trust/visible.hpp"

namespace {

using namespace troupe_tool;

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_line(line);
}
void print_table(const table& all) {
  print_line(all.head);
  for (const table_line& line : all.lines) print_line(line.text);
}
// Pure ASCII: no character of a text in it can control a terminal.
void print_json(const json& value) { print_line(value.dump(-1, ' ', true)); }

// One program that does not answer, or not sensibly, does not hide the others.
std::string line_of(const program_place& where) {
  constexpr std::chrono::seconds patience{2};
  const json summary = program(where, patience).ask("summary");
  std::uint64_t actors = 0, messages = 0;
  auto name = summary.at("program").get<std::string>();
  for (const json& one : summary.at("runtimes")) {
    for (const json& node : one.value("cluster", json::array())) {
      if (node.contains("shards"))
        name += fmt::format(", node {}: {} shards", node.at("node").get<std::string>(),
                            node.at("shards").get<int>());
    }
    actors += one.at("metrics").at("actors").get<std::uint64_t>();
    messages += one.at("total").at("messages").get<std::uint64_t>();
  }
  return fmt::format("{:>8} {:>8} {:>10} {:>12}  {}", where.pid, summary.at("runtimes").size(),
                     actors, messages, name);
}

void list_programs() {
  print("{:>8} {:>8} {:>10} {:>12}  {}\n", "pid", "runtimes", "actors", "messages", "program");
  for (const program_place& where : all_places()) {
    try {
      print_line(line_of(where));
    } catch (const std::exception& failed) {
      put(fmt::format("troupe: process {}: {}\n", where.pid, shown(failed.what())), stderr);
    }
  }
}

struct choices {
  int pid = 0;
  order by = order::messages;
  bool once = false, as_json = false, longest = false;
  double interval_s = 1;
  std::string of_class;
  std::size_t count = 20;
};

std::chrono::milliseconds interval_of(const choices& chosen) {
  return std::chrono::milliseconds(static_cast<long>(chosen.interval_s * 1000));
}

void show_once(program& of, const choices& chosen) {
  moment seen{of.ask("summary"), json()};
  std::this_thread::sleep_for(interval_of(chosen));
  seen.now = of.ask("summary");
  if (chosen.as_json) {
    print_json(seen.now);
    return;
  }
  constexpr std::size_t width = 80;
  print_lines(head_lines(seen, width));
  print_table(handler_table(seen, chosen.by, width));
  const table others = work_table(seen, width);
  if (!others.lines.empty()) print_table(others);
}

void show_actors(program& of, const choices& chosen) {
  const std::string question = chosen.longest ? fmt::format("longest 0 {}", chosen.count)
                                              : fmt::format("actors 0 0 {}", chosen.count);
  const json page = of.ask(chosen.of_class.empty() ? question : question + " " + chosen.of_class);
  if (chosen.as_json) {
    print_json(page);
  } else {
    print_table(actor_table(page, 0, 120));
  }
}

void show_dump(program& of) {
  const json answer = of.ask("dump");
  for (const json& one : answer.at("dumps")) put(one.get<std::string>());
  const json summary = of.ask("summary");
  const table work = work_table({json(), summary}, 120);
  if (!work.lines.empty()) print_table(work);
  const table members = member_table(summary, 120);
  if (!members.lines.empty()) print_table(members);
  const table warnings = warning_table(of.ask("warnings"), SIZE_MAX);
  if (!warnings.lines.empty()) print_table(warnings);
}

// The name of a logger must not become another question.
void show_log(program& of, const std::string& level, const std::string& of_logger) {
  if ((level + of_logger).find('\n') != std::string::npos)
    throw failure("a level and a logger are one line");
  std::string question = "log";
  if (!level.empty()) question += " " + level;
  if (!of_logger.empty()) question += " " + of_logger;
  const json answer = of.ask(question);
  for (const auto& [name, its] : answer.at("levels").items())
    print_line(fmt::format("{:8} {}", its.get<std::string>(), name));
}

// `troupe store FILE|URL ...`: needs no running program.
void add_store_commands(CLI::App& app) {
  const auto kept = std::make_shared<store_choices>();
  store_choices& chosen = *kept;
  CLI::App* const store =
      app.add_subcommand("store", "What durable actors have stored in a database.");
  store->add_option("DATABASE", chosen.target, "a SQLite file, or postgresql://…")
      ->required()
      ->check(CLI::NonexistentPath | CLI::ExistingFile);
  store->require_subcommand(1);
  const auto command = [&](const char* name, const char* what, auto does) {
    CLI::App* const made = store->add_subcommand(name, what);
    made->callback([kept, does] { does(*kept); });
    return made;
  };
  command("ls", "Classes, and how many actors and messages there are.", list_store);
  CLI::App* const show =
      command("show", "One actor: its state, messages and reminders.", show_stored);
  show->add_option("CLASS", chosen.kind)->required();
  show->add_option("KEY", chosen.key)->required();
  command("dead-letters", "Messages whose handlers failed too often.", show_dead_letters)
      ->add_option("--again", chosen.again,
                   "the number of one that is to be handled again at the next start");
  command("export", "All rows as lines of JSON.", export_store);
  command("import", "Such lines into a new store.", import_store)
      ->add_option("INPUT", chosen.input, "the lines")
      ->required();
}

// `troupe lint FILES [-- FLAGS]`: needs no running program. The flags are the compiler's.
CLI::App* add_lint_command(CLI::App& app, lint_choices& chosen) {
  CLI::App* const made = app.add_subcommand(
      "lint", "Coroutines in C++ sources that g++ 12 compiles into wrong programs.");
  made->add_option("FILES", chosen.files, "sources, and headers of your own")->required();
  made->add_option("-p,--build", chosen.build,
                   "a folder with compile_commands.json, which has the flags of the files");
  made->footer(
      "troupe lint FILES -- FLAGS gives the compiler's flags. Without them and without -p the\n"
      "installed headers of troupe are used. It needs clang-query: Debian's clang-tools-22.\n"
      "The exit status is 1 if something was found, and 2 if a file could not be read.");
  return made;
}

// Takes the words behind `--` off the command line.
int take_flags(int argc, char** argv, lint_choices& chosen) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[1]) != "lint" || std::string_view(argv[i]) != "--") continue;
    chosen.has_flags = true;
    chosen.flags.assign(argv + i + 1, argv + argc);
    return i;
  }
  return argc;
}

void add_top_options(CLI::App& top, choices& chosen) {
  const std::map<std::string, order> orders{{"messages", order::messages}, {"busy", order::busy},
                                            {"wait", order::wait},         {"alive", order::alive},
                                            {"failures", order::failures}, {"name", order::name}};
  top.add_option("--sort", chosen.by, "messages, busy, wait, alive, failures or name")
      ->transform(CLI::CheckedTransformer(orders, CLI::ignore_case));
  top.add_option("--interval", chosen.interval_s, "seconds between two looks (default 1)")
      ->check(CLI::Range(0.05, 3600.0));
  top.add_flag("--once", chosen.once, "print one table and end");
  top.add_flag("--json", chosen.as_json, "with --once: print the program's answer as JSON");
}

int run(int argc, char** argv) {
  CLI::App app("Looks into running programs that were started with TROUPE_OBSERVE=1.", "troupe");
  app.require_subcommand(1);
  choices chosen;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* const made = app.add_subcommand(name, what);
    made->add_option("PID", chosen.pid, "process number of the program")->required();
    return made;
  };
  app.add_subcommand("ps", "The user's programs that can be asked.")->callback(list_programs);
  CLI::App* const top = command("top", "Handlers by rate and time, drawn again each second.");
  add_top_options(*top, chosen);
  CLI::App* const actors = command("actors", "Actors, by id or by the length of the mailbox.");
  actors->add_option("--class", chosen.of_class, "of this class only");
  actors->add_option("--count", chosen.count, "at most so many, up to 1000 (default 20)")
      ->check(CLI::Range(1, 1000));
  actors->add_flag("--longest", chosen.longest, "those with most mail");
  actors->add_flag("--json", chosen.as_json, "as JSON");
  CLI::App* const dump =
      command("dump", "What each suspended turn and blocked thread waits for; warnings.");
  std::string listen = "127.0.0.1:8125";
  CLI::App* const page = command("page", "A page for a browser on this machine.");
  page->add_option("--listen", listen, "address and port (default 127.0.0.1:8125)");
  std::string duration, file, level, of_logger;
  bool as_text = false;
  CLI::App* const trace = command("trace", "What each thread does, for ui.perfetto.dev.");
  trace->add_option("DURATION", duration, "5s, 500ms or 2m, at most 10m")->required();
  auto* const output = trace->add_option("-o,--output", file, "the new file to write");
  trace->add_flag("--text", as_text, "a table to read, on standard output")->excludes(output);
  CLI::App* const log = command("log", "The levels of the program's log.");
  log->add_option("LEVEL", level, "set it: trace, debug, info, warning, error or off");
  log->add_option("LOGGER", of_logger, "of that logger alone");
  CLI::App* const metrics = command("metrics", "All numbers in the text format of Prometheus.");
  add_store_commands(app);
  lint_choices sources;
  CLI::App* const linting = add_lint_command(app, sources);
  try {
    app.parse(take_flags(argc, argv, sources), argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : 2;
  }
  if (linting->parsed()) return lint(sources);
  if (page->parsed()) {
    serve_page(chosen.pid, listen);
    return 0;
  }
  if (trace->parsed()) {
    as_text ? print_trace(chosen.pid, duration_of(duration))
            : write_trace(chosen.pid, duration_of(duration), file);
    return 0;
  }
  if (app.got_subcommand("ps") || app.got_subcommand("store")) return 0;
  program of(chosen.pid);
  if (actors->parsed()) {
    show_actors(of, chosen);
  } else if (dump->parsed()) {
    show_dump(of);
  } else if (log->parsed()) {
    show_log(of, level, of_logger);
  } else if (metrics->parsed()) {
    put(troupe::observe_page::as_metrics(of.ask_text("summary")));
  } else if (chosen.once || chosen.as_json) {
    show_once(of, chosen);
  } else {
    show_top(of, chosen.by, interval_of(chosen));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const int status = run(argc, argv);
  troupe_tool::end_output();
  return status;
} catch (const std::exception& failed) {
  troupe_tool::put(fmt::format("troupe: {}\n", failed.what()), stderr);
  return 1;
}
