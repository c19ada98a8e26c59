#include "command_line/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "command_line/arguments.hpp"
#include "command_line/nearest.hpp"
#include "command_line/sections.hpp"

namespace troupe_tool {
namespace {

constexpr std::pair<const char*, order> orders[] = {
    {"messages", order::messages}, {"busy", order::busy},         {"wait", order::wait},
    {"alive", order::alive},       {"failures", order::failures}, {"name", order::name}};

std::vector<std::string> names_of_orders() {
  std::vector<std::string> names;
  for (const auto& [name, by] : orders) names.emplace_back(name);
  return names;
}

const CLI::App* deepest_of(const CLI::App& app) {
  const CLI::App* found = &app;
  while (!found->get_subcommands().empty()) found = found->get_subcommands().front();
  return found;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const subcommand : commands_of(app)) names.push_back(subcommand->get_name());
  return names;
}

// A message of the library is a sentence or two, with an end of line behind each.
std::string one_line(std::string text) {
  for (char& character : text) {
    if (character == '\n') character = ' ';
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  return fmt::format("troupe: there is no command `{} {}`{}: `{} --help` lists the commands",
                     words_of(app), word, did_you_mean(word, names_of_commands(app)),
                     words_of(app));
}

bool is_missing_command(const CLI::ParseError& wrong) {
  return wrong.get_name() == "RequiredError" &&
         std::string_view(wrong.what()).find("subcommand") != std::string_view::npos;
}

std::string sentence_of(const CLI::App& app, const CLI::ParseError& wrong) {
  const CLI::App& at = *deepest_of(app);
  const std::string words = words_of(at);
  const bool has_commands = !commands_of(at).empty();
  const std::vector<std::string> rest = at.remaining();
  if (has_commands) {
    for (const std::string& word : rest) {
      if (!word.starts_with('-')) return unknown_command(at, word);
    }
    if (!rest.empty())
      return fmt::format("{}: there is no option {}: `{} --help` lists them", words, rest.front(),
                         words);
    if (is_missing_command(wrong))
      return fmt::format("{}: a command is missing: `{} --help` lists the commands", words, words);
  }
  const std::string problem = one_line(wrong.what());
  const bool lacks_program =
      problem == "PID is required" || problem.starts_with("Could not convert: PID");
  if (lacks_program)
    return fmt::format(
        "{}: PID must be the number of a process: `troupe ps` lists the programs "
        "that can be asked",
        words);
  return fmt::format("{}: {}: `{} --help` shows what it takes", words, problem, words);
}

// Takes the words behind `--` off the command line: they are the compiler's.
int take_flags(int argc, char** argv, lint_choices& chosen) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[1]) != "lint" || std::string_view(argv[i]) != "--") continue;
    chosen.has_flags = true;
    chosen.flags.assign(argv + i + 1, argv + argc);
    return i;
  }
  return argc;
}

// Takes the program and its arguments off the command line of `explore` and `replay`: they begin
// behind `--`, or with the first word that is none of the tool's.
int take_program(int argc, char** argv, std::vector<std::string>& program) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command != "explore" && command != "replay") return argc;
  constexpr std::array flags{"-h", "--help", "--dead-letters", "--faults", "--pairs"};
  int own = command == "replay" ? 1 : 0;  // the file
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") {
      program.assign(argv + i + 1, argv + argc);
      return i;
    }
    if (word.starts_with('-')) {
      const bool has_value =
          std::ranges::find(flags, word) == flags.end() && word.find('=') == std::string_view::npos;
      const bool is_joined = word.size() > 2 && word[1] != '-';
      if (has_value && !is_joined) ++i;
    } else if (own-- == 0) {
      program.assign(argv + i, argv + argc);
      return i;
    }
  }
  return argc;
}

}  // namespace

order choices::by() const {
  for (const auto& [name, by] : orders) {
    if (sort == name) return by;
  }
  return order::messages;
}

std::chrono::milliseconds choices::interval() const {
  return std::chrono::milliseconds(static_cast<long>(interval_s * 1000));
}

command_line::command_line()
    : app_(
          "Looks into running programs that were started with TROUPE_OBSERVE=1, into the "
          "databases of durable actors, and into sources. Begins new projects, and searches for "
          "schedules under which a program fails.",
          "troupe") {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", version(), "Print the version and exit");
  add_program_commands();
  add_recording_commands();
  add_store_commands();
  add_lint_command();
  add_new_command();
  add_explore_commands();
  add_help_commands();
  app_.footer(text_of_sections());  // not before: its commands would have it, too
}

std::string command_line::version() const { return "troupe " TROUPE_TOOL_VERSION; }

CLI::App* command_line::add(const char* name, const char* description) {
  CLI::App* const command = app_.add_subcommand(name, description);
  command->add_option("PID", chosen_.pid, "process number of the program")->required();
  return command;
}

void command_line::add_program_commands() {
  app_.add_subcommand("ps", "The user's programs that can be asked; for root, those of all users.")
      ->add_flag("--pids", chosen_.numbers_alone, "the process numbers alone; asks no program");
  CLI::App* const top = add("top", "Handlers by rate and time, drawn again each second.");
  top->add_option("--sort", chosen_.sort, "what the rows are sorted by (default messages)")
      ->check(CLI::IsMember(names_of_orders()));
  top->add_option("--interval", chosen_.interval_s, "seconds between two looks (default 1)")
      ->check(CLI::Range(0.05, 3600.0));
  top->add_flag("--once", chosen_.once, "print one table and end, as it does without a terminal");
  top->add_flag("--json", chosen_.as_json, "print the program's answer as JSON and end");
  top->add_option("--at", chosen_.ago, "print the table of that time: -30s, -10m, at most -1h");
  CLI::App* const actors = add("actors", "Actors, by id or by the length of the mailbox.");
  actors->add_option("--class", chosen_.of_class, "of this class only");
  actors->add_option("--count", chosen_.count, "at most so many, up to 1000 (default 20)")
      ->check(CLI::Range(1, 1000));
  actors->add_flag("--longest", chosen_.longest, "those with most mail");
  actors->add_flag("--json", chosen_.as_json, "as JSON");
  add("dump",
      "The warnings; what each suspended turn and blocked thread waits for; the last turns, if the "
      "program has a flight recorder.")
      ->add_flag("--all", chosen_.every_line,
                 "each line, even where many say the same, and 1000 turns instead of 40");
  CLI::App* const stack = add("stack", "The functions that the threads are in, with their lines.");
  stack->add_option("WORKER", chosen_.worker, "of this worker alone; 0: of no worker's threads")
      ->check(CLI::Range(0u, 100'000u));
  stack->add_flag("--all", chosen_.every_line, "the library's functions around a handler, too");
  add("page", "A page for a browser on this machine.")
      ->add_option("--listen", chosen_.listen, "address and port (default 127.0.0.1:8125)");
}

void command_line::add_recording_commands() {
  CLI::App* const trace = add("trace", "What each thread does, for ui.perfetto.dev.");
  trace->add_option("DURATION", chosen_.duration, "5s, 500ms or 2m, at most 10m")->required();
  auto* const output = trace->add_option("-o,--output", chosen_.file, "the new file to write");
  trace->add_flag("--text", chosen_.as_text, "a table to read, on standard output")
      ->excludes(output);
  CLI::App* const profile = add("profile", "The functions that use the processors.");
  profile->add_option("DURATION", chosen_.duration, "5s, 500ms or 2m, at most 10m")->required();
  profile->add_option("-o,--output", chosen_.file, "the new file for a flame graph (SVG)");
  profile->add_flag("--collapsed", chosen_.is_collapsed,
                    "a line for each stack, with its microseconds, in place of the table");
  CLI::App* const log = add("log", "The levels of the program's log; sets one.");
  log->add_option("LEVEL", chosen_.level, "the level that is set")
      ->check(CLI::IsMember(
          std::vector<std::string>{"trace", "debug", "info", "warning", "error", "off"}));
  log->add_option("LOGGER", chosen_.of_logger, "of that logger alone");
  add("metrics", "All numbers in the text format of Prometheus.");
}

// `troupe store FILE|URL ...`: needs no running program.
void command_line::add_store_commands() {
  store_choices& chosen = chosen_.stored;
  CLI::App* const store =
      app_.add_subcommand("store", "What durable actors have stored in a database.");
  store->add_option("DATABASE", chosen.target, "a SQLite file, or postgresql://...")
      ->required()
      ->check(CLI::NonexistentPath | CLI::ExistingFile);
  store->require_subcommand(1);
  store->add_subcommand("ls", "Classes, and how many actors and messages there are.");
  CLI::App* const keys = store->add_subcommand("keys", "The keys of a class's actors, in order.");
  keys->add_option("CLASS", chosen.kind, "the class of the actors")->required();
  keys->add_option("--prefix", chosen.prefix, "only those that begin with this text");
  keys->add_option("--after", chosen.after, "only those behind this one: the next page");
  keys->add_option("--count", chosen.count, "at most so many (default 100)")
      ->check(CLI::Range(1, 1'000'000));
  CLI::App* const show =
      store->add_subcommand("show", "One actor: its state, events, messages and reminders.");
  show->add_option("CLASS", chosen.kind, "the class of the actor")->required();
  show->add_option("KEY", chosen.key, "the key of the actor")->required();
  store->add_subcommand("dead-letters", "Messages whose handlers failed too often.")
      ->add_option("--again", chosen.again,
                   "the number of one that is to be handled again at the next start");
  store->add_subcommand("export", "All rows as lines of JSON.");
  store->add_subcommand("import", "Such lines into a new store.")
      ->add_option("INPUT", chosen.input, "the file with the lines")
      ->required();
}

// `troupe lint FILES [-- FLAGS]`: needs no running program. The flags are the compiler's.
void command_line::add_lint_command() {
  CLI::App* const command = app_.add_subcommand(
      "lint", "Coroutines in C++ sources that g++ 12 compiles into wrong programs.");
  command->add_option("FILES", chosen_.sources.files, "sources, and headers of your own")
      ->required();
  command->add_option("-p,--build", chosen_.sources.build,
                      "a folder with compile_commands.json, which has the flags of the files");
  command->footer(
      "troupe lint FILES -- FLAGS gives the compiler's flags. Without them and without -p the\n"
      "installed headers of troupe are used. It needs clang-query: Debian's clang-tools-22.\n"
      "The exit status is 1 if something was found, and 2 if a file could not be read.");
}

// `troupe new NAME`: needs no running program.
void command_line::add_new_command() {
  new_choices& chosen = chosen_.project;
  CLI::App* const command =
      app_.add_subcommand("new", "A new project: a program, its test by simulation, its build.");
  command->add_option("NAME", chosen.name, "of the project, its folder and its program")
      ->required();
  auto* const http = command->add_flag("--http", chosen.http, "a web server");
  auto* const durable =
      command->add_flag("--durable", chosen.durable, "actors whose state survives crashes");
  auto* const cluster =
      command->add_flag("--cluster", chosen.cluster, "actors that several programs share");
  http->excludes(durable)->excludes(cluster);
  durable->excludes(cluster);
  command->footer(
      "A folder NAME is made in this one, unless it has files. Without an option the program has\n"
      "actors alone. It builds at once against the installed troupe; its README.md says how.");
}

// `troupe explore PROGRAM…` and `troupe replay FILE PROGRAM…`: what follows is the program's.
void command_line::add_explore_commands() {
  explore_choices& chosen = chosen_.explored;
  CLI::App* const command = app_.add_subcommand(
      "explore", "A schedule under which a program fails, and the few turns that matter.");
  command->add_option("--schedules", chosen.schedules, "at most so many (default 500)")
      ->check(CLI::Range(1u, 1'000'000'000u));
  command->add_option("--seconds", chosen.seconds, "at most so long (default 60)")
      ->check(CLI::Range(0.0, 1e9));
  command
      ->add_option("--run-seconds", chosen.run_seconds,
                   "an execution that takes longer fails (default 30)")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--seed", chosen.seed, "of the search (default 1)");
  command->add_option("--jobs", chosen.jobs, "executions at a time (default: one a processor)")
      ->check(CLI::Range(1u, 1'024u));
  command->add_option("-o,--output", chosen.file, "the file to write (default failure.schedule)");
  constexpr const char* story = "write the failure's sequence diagram: SVG for a name in .svg";
  command->add_option("--story", chosen.story, story);
  command->add_flag("--dead-letters", chosen.dead_letters, "a dead letter is a failure");
  command->add_flag("--faults", chosen.faults,
                    "try faults of connections, files and storages: cut, lost, failing, slow");
  command->add_flag("--pairs", chosen.pairs,
                    "list the pairs of handlers that ran in one order only");
  command->footer(
      "troupe explore [OPTIONS] PROGRAM [ARGUMENTS], or with -- before the program. It is run\n"
      "simulated, once for each schedule, and fails by a signal or by a status that is not 0.\n"
      "The exit status is 1 if a schedule failed.");
  CLI::App* const replayed =
      app_.add_subcommand("replay", "Runs a program by a schedule that explore has written.");
  replayed->add_option("SCHEDULE", chosen_.replayed, "the file")->required();
  replayed->add_option("--story", chosen.story, story);
  replayed->footer(
      "troupe replay SCHEDULE -- PROGRAM [ARGUMENTS]; the program may be a debugger with it.");
}

void command_line::add_help_commands() {
  CLI::App* const help = app_.add_subcommand("help", "The help of a command, or of all.");
  auto* const topic = help->add_option("COMMAND", chosen_.topic, "the command");
  help->add_flag("--man", chosen_.as_manual, "the manual page troupe(1), in the format of man(7)")
      ->excludes(topic);
  app_.add_subcommand("completion", "A script that completes these commands in a shell.")
      ->add_option("SHELL", chosen_.shell, "the shell that sources it")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh"}));
}

std::string command_line::parse(int argc, char** argv) {
  try {
    const int own = take_program(argc, argv, chosen_.explored.program);
    app_.parse(take_flags(own, argv, chosen_.sources), argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() != 0) throw wrong_usage(sentence_of(app_, wrong));
    std::ostringstream out;
    app_.exit(wrong, out, out);
    answer_ = out.str();
    return "";
  }
  const std::string words = words_of(*deepest_of(app_));
  return words.substr(words.find(' ') + 1);
}

std::string command_line::help_of(const std::string& topic) const {
  // Its own function `help` would show the help of the command that was parsed.
  const auto help = [](const CLI::App& app) {
    return app.get_formatter()->make_help(&app, words_of(app), CLI::AppFormatMode::Normal);
  };
  if (topic.empty()) return help(app_);
  for (const CLI::App* const subcommand : commands_of(app_)) {
    if (subcommand->get_name() == topic) return help(*subcommand);
  }
  throw wrong_usage(unknown_command(app_, topic));
}

}  // namespace troupe_tool
