"""Tests of the checks: each must pass a good tree and complain about a bad one."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import classes
import commands
import labels
import layers
import layout
import links
import messages
import rooms
import text
import tidy
import ways
import words


class Checks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name).resolve()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def passes(self, check, *more):
        self.assertEqual(check(tidy.Tree(self.root), *more), [])

    def complains(self, check, about, *more):
        problems = check(tidy.Tree(self.root), *more)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(about, problems[0])

    def test_includes_point_down(self):
        self.write("src/actor/mailbox.cpp", '#include "sched/queue.hpp"\n#include <troupe/base/error.hpp>\n')
        self.write("src/base/error.test.cpp", '#include <gtest/gtest.h>\n#include "support/random.hpp"\n')
        self.passes(layers.check_layers)
        self.write("src/sched/queue.hpp", "#pragma once\n#include <troupe/actor/ref.hpp>\n")
        self.complains(layers.check_layers, "src/sched/queue.hpp:2: sched is not above actor")

    def test_no_wait_names_a_line_of_a_public_header(self):
        self.write("include/troupe/io/read.hpp", "#pragma once\n")
        self.write("src/actor/state/awaited.cpp", 'constexpr std::string_view header_folders[] = {\n    "io"};\n')
        self.passes(layers.check_layers)
        self.write("include/troupe/http/read.hpp", "#pragma once\n")
        self.complains(layers.check_layers, "header_folders lacks http")

    def test_a_line_ends_at_a_hundred_columns(self):
        self.write("src/io/poll.cpp", "int a;" + " " * 92 + "//\n")
        self.passes(layout.check_columns)
        self.write("src/io/poll.cpp", "int a;" + " " * 93 + "//\n")
        self.complains(layout.check_columns, "src/io/poll.cpp:1: 101 columns")

    def test_a_function_has_at_most_seventy_lines(self):
        def body(lines):
            return "namespace a {\nvoid long_one(int b,\n              int c) {\n" + "  ++b;\n" * lines + "}\n}\n"
        self.write("src/io/poll.cpp", body(layout.FUNCTION_LINES_MAX - 3))
        self.passes(layout.check_functions)
        self.write("src/io/poll.cpp", body(layout.FUNCTION_LINES_MAX - 2))
        self.complains(layout.check_functions, "src/io/poll.cpp:2: 71 lines in one function")
        self.write("src/io/poll.cpp", "class a {\n  a()\n      : b_(1) {\n" + "    c();\n" * 80 + "  }\n};\n")
        self.complains(layout.check_functions, "src/io/poll.cpp:2: 83 lines")

    def test_a_folder_has_at_most_sixteen_files(self):
        for i in range(layout.FOLDER_FILES_MAX):
            self.write(f"src/io/f{i}.cpp", "")
        self.passes(layout.check_folders)
        self.write("src/io/one_more.hpp", "")
        self.complains(layout.check_folders, "src/io: 17 files")

    def test_a_listed_folder_may_have_more_files(self):
        for number in range(17):
            self.write(f"examples/{number}.cpp", "int main() {}\n")
        self.passes(layout.check_folders)

    def test_a_basename_is_that_of_at_most_two_units(self):
        self.write("include/troupe/io/session.hpp", "")
        self.write("src/io/open/session.cpp", "")  # with the header it is one unit
        self.write("src/tls/session.cpp", "")
        self.write("src/dns/session.test.cpp", "")
        self.passes(layout.check_basenames)
        self.write("src/http/h1/session.hpp", "")
        self.complains(layout.check_basenames, "session: the name of 3 units (http/h1, io, tls)")

    def test_two_headers_of_a_layer_with_one_basename_are_two_units(self):
        for folder in ("include/troupe/http", "src/http/h1", "src/http/h2"):
            self.write(f"{folder}/session.hpp", "")
        self.complains(layout.check_basenames, "session: the name of 3 units")

    def test_a_listed_basename_may_repeat_and_leaves_the_list_when_it_does_not(self):
        for layer in ("io", "tls", "dns"):
            self.write(f"src/{layer}/error.hpp", "")
        self.passes(layout.check_basenames)
        (self.root / "src/dns/error.hpp").unlink()
        self.complains(layout.check_basenames, "layout.py: error is the name of 2 units")

    def test_retired_words_are_refused_in_identifiers_alone(self):
        self.write("src/io/poll.cpp", "// a nudge\nint stirrup, kind, shelfless;  // stir\n")
        self.passes(layout.check_retired_words)
        self.write("src/io/poll.cpp", "int take_nudges();\n")
        self.complains(layout.check_retired_words, "`take_nudges`: say wake hint for nudge")

    def test_the_layout_is_that_of_the_formatter(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("src/io/poll.cpp", "int a;\n")
        self.passes(layout.check_format)
        self.write("src/io/poll.cpp", "int  a;\n")
        self.complains(layout.check_format, "src/io/poll.cpp")

    def test_layers_side_by_side_do_not_include_each_other(self):
        self.write("src/io/socket.cpp", '#include "actor/ref.hpp"\n')
        self.complains(layers.check_layers, "io is not above actor")

    def test_folder_outside_the_table_is_refused(self):
        self.write("include/troupe/util/misc.hpp", "")
        self.complains(layers.check_layers, "lies in no layer")

    def test_public_header_does_not_include_a_private_one(self):
        self.write("include/troupe/sched/policy.hpp", '#include "sched/queue.hpp"\n')
        self.complains(layers.check_layers, "includes the private sched/queue.hpp")

    def test_nobody_below_includes_the_lot(self):
        self.write("src/io/poll.cpp", "#include <troupe/troupe.hpp>\n")
        self.complains(layers.check_layers, "includes the lot")

    def test_include_has_a_full_path(self):
        self.write("src/io/poll.cpp", '#include "poll.hpp"\n')
        self.complains(layers.check_layers, "by its full path")

    def test_umbrella_reaches_every_header(self):
        self.write("include/troupe/troupe.hpp", "#include <troupe/actor/ref.hpp>\n")
        self.write("include/troupe/actor/ref.hpp", "#include <troupe/base/error.hpp>\n")
        self.write("include/troupe/base/error.hpp", "")
        self.passes(layers.check_umbrella)
        self.write("include/troupe/base/lost.hpp", "")
        self.complains(layers.check_umbrella, "include/troupe/base/lost.hpp")

    def test_component_has_a_header_that_reaches_all_of_it(self):
        self.write("include/troupe/troupe.hpp", "")
        self.write("include/troupe/json/read.hpp", "")
        self.complains(layers.check_umbrella, "include/troupe/json.hpp: is missing")
        self.write("include/troupe/json.hpp", "")
        self.complains(layers.check_umbrella, "include/troupe/json/read.hpp: include/troupe/json.hpp does not reach it")
        self.write("include/troupe/json.hpp", "#include <troupe/json/read.hpp>\n")
        self.passes(layers.check_umbrella)

    def test_public_types_show_their_use(self):
        internal = "namespace troupe {\nclass later;\nnamespace detail {\nstruct part {\n};\n}  // namespace detail\n"
        self.write("include/troupe/actor/ref.hpp", internal + "}  // namespace troupe\n")
        self.write("include/troupe/actor/cell.hpp", "namespace troupe::actor {\nstruct cell {\n};\n}\n")
        self.passes(layers.check_examples)
        self.write("include/troupe/actor/ref.hpp", internal + "class ref {\n};\n}  // namespace troupe\n")
        self.complains(layers.check_examples, "include/troupe/actor/ref.hpp:7: ref has no example")
        self.write("include/troupe/actor/ref.hpp", internal + "// Example:\n//     ref r;\nclass ref {\n};\n")
        self.passes(layers.check_examples)

    def test_length_at_the_limit_and_one_past(self):
        self.write("src/base/long.cpp", "\n" * text.LINES_MAX)
        self.passes(text.check_length)
        self.write("src/base/long.cpp", "\n" * (text.LINES_MAX + 1))
        self.complains(text.check_length, "1001 lines")

    def test_a_chapter_at_the_limit_and_one_past(self):
        self.write("docs/guide/long.md", "\n" * text.CHAPTER_LINES_MAX)
        self.passes(text.check_length)
        self.write("docs/guide/long.md", "\n" * (text.CHAPTER_LINES_MAX + 1))
        self.complains(text.check_length, "301 lines")

    def test_words_that_leave_something_open(self):
        self.write("src/base/a.cpp", 'mkstemp("XXXXXX"); // a hacker\n')
        self.passes(text.check_words)
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "DISABLED_test"):
            self.write("src/base/a.cpp", f"// {word}: later\n")
            self.complains(text.check_words, "src/base/a.cpp:1")

    def test_no_assignment_of_an_empty_text_is_to_free_memory(self):
        self.write("src/base/a.cpp", "std::string b = std::string();\nuse(std::string());\nb.clear();\n")
        self.passes(text.check_kept_memory)
        for line in ("  text_ = std::string();", "if (a) b->c.text = std::string{};"):
            self.write("src/base/a.cpp", line + "\n")
            self.complains(text.check_kept_memory, "src/base/a.cpp:1")

    def test_sleeps_need_a_reason(self):
        self.write("tests/stress/a.cpp", "co_await troupe::sleep_for(1ms);\n"
                                         "usleep(1);  // sleeps: the kernel has no event for this\n")
        self.passes(text.check_sleeps)
        for call in ("std::this_thread::sleep_for(1ms);", "usleep(5);", "nanosleep(&t, 0);", "::sleep(1);"):
            self.write("tests/stress/a.cpp", call + "\n")
            self.complains(text.check_sleeps, "tests/stress/a.cpp:1")
        self.write("tests/stress/a.cpp", "")
        self.write("tests/examples/a.sh", "  sleep 1\n")
        self.complains(text.check_sleeps, "tests/examples/a.sh:1")

    def test_orders_need_a_reason_nearby(self):
        use = "x.store(1, std::memory_order_release);\n"
        self.write("src/sched/a.hpp", "// order: release  publishes x" + "\n" * text.ORDER_REACH_LINES + use)
        self.passes(text.check_orders)
        self.write("src/sched/a.hpp", "// order: release  publishes x\n" + "\n" * text.ORDER_REACH_LINES + use)
        self.complains(text.check_orders, "src/sched/a.hpp:8: memory_order_release")
        self.write("src/sched/a.hpp", "x.store(1, std::memory_order::release);\n")
        self.complains(text.check_orders, "memory_order::release")
        self.write("src/sched/a.hpp", "return x.load();\n")
        self.complains(text.check_orders, "names no order")

    def test_file_names(self):
        self.write("src/base/run_queue.test.cpp", "")
        self.write("tests/CMakeLists.txt", "")
        self.write("README.md", "")
        self.passes(text.check_names)
        self.write("src/base/RunQueue.hpp", "")
        self.complains(text.check_names, "src/base/RunQueue.hpp")

    def test_links_lead_somewhere(self):
        self.write("docs/guide.md", "# The Guide\n[a](../src/a.cpp) [b](#the-guide) `docs/guide.md`\n"
                                    "```\n[c](nowhere.md)\n```\n[d](mailto:x@y) and docs/*.md, src/<layer>/x.cpp\n")
        self.write("src/a.cpp", "// see docs/guide.md\n")
        self.passes(links.check_links)
        self.write("src/a.cpp", "// see docs/gone.md\n")
        self.complains(links.check_links, "src/a.cpp:1: names docs/gone.md")
        self.write("src/a.cpp", "")
        self.write("docs/other.md", "[x](gone.txt)\n")
        self.complains(links.check_links, "docs/other.md:1: links to gone.txt")
        self.write("docs/other.md", "[x](guide.md#nothing)\n")
        self.complains(links.check_links, "no heading #nothing")
        self.write("docs/other.md", "`tell([](Sum& self) {})` and `[](int)` and [`text`](guide.md)\n")
        self.passes(links.check_links)
        self.write("docs/other.md", "`tell([](../Sum& self) {})` and `[](../)`\n")
        self.complains(links.check_links, "docs/other.md:1: links within inline code: `[](../)`")

    def test_a_way_names_what_there_is_and_few_files(self):
        def document(limit, steps):
            self.write("docs/ways.md", f"# Ways\n\n## The ways\n\n### A call\n\n{limit}\n\n{steps}\n"
                                       "## Threads\n\n### No way\n\n1. [x](../src/a/x.cpp)\n")
        step = "1. [a.cpp](../src/a/a.cpp), `cell::send()`: sends\n   it to [b.hpp](../src/a/b.hpp), `take()`.\n"
        self.write("src/a/a.cpp", "void cell::send() {}\n")
        self.write("src/a/b.hpp", "int take();\n")
        document("At most 2 files.", step)
        self.passes(ways.check_ways)
        document("At most 1 files.", step)
        self.complains(ways.check_ways, "docs/ways.md:5: `A call` names 2 files, at most 1")
        document("Few files.", step)
        self.complains(ways.check_ways, "has no line `At most N files.`")
        document("At most 2 files.", step + "2. [a.cpp](../src/a/a.cpp): then it ends.\n")
        self.complains(ways.check_ways, "docs/ways.md:11: the step names no function")
        document("At most 2 files.", step + "2. `a.cpp`, `send()`: sends.\n")
        self.passes(ways.check_ways)
        document("At most 2 files.", step + "2. `c.cpp`, `send()`: sends.\n")
        self.complains(ways.check_ways, "docs/ways.md:11: the way has not linked c.cpp before")
        document("At most 2 files.", "Nothing.\n")
        self.complains(ways.check_ways, "`A call` has no steps")
        document("At most 2 files.", step)
        self.write("src/a/b.hpp", "int retake();\n")
        self.complains(ways.check_ways, "docs/ways.md:10: src/a/b.hpp has no take()")
        (self.root / "src/a/b.hpp").unlink()
        self.complains(ways.check_ways, "docs/ways.md:10: the step names src/a/b.hpp, which does not exist")

    def test_the_counts_of_a_way_are_shown(self):
        def kept(line, *files):
            self.write("tests/instructions/ways.txt", "# comment\ncompiler g++\n" + "\n".join([line, *files]) + "\n")

        def document(row):
            self.write("docs/ways.md", "# Ways\n\n## The ways\n\n### A call\n\nAt most 2 files.\n\n"
                                       f"1. [a.cpp](../src/a/a.cpp), `send()`: sends.\n\n## Counted\n\n{row}\n")
        self.write("src/a/a.cpp", "void send() {}\n")
        self.write("src/a/b.hpp", "int take();\nint give();\n")
        two = ("  src/a/a.cpp: send", "  src/a/b.hpp: give take")
        kept("way call: 3 functions in 2 files, aim 2 in 1", *two)
        row = "| [`call`](#a-call) | 3 | 2 | 1 | 2 in 1 |"
        document(row)
        self.passes(ways.check_counted_ways)
        document(row.replace("| 3 |", "| 4 |"))
        self.complains(ways.check_counted_ways, "docs/ways.md:13: the row `call` has the numbers [4, 2, 1, 2, 1], and the counts are [3, 2, 1, 2, 1]")
        document("")
        self.complains(ways.check_counted_ways, "has no row `call`")
        document(row.replace("#a-call", "#no-call"))
        self.complains(ways.check_counted_ways, "`call` is no way of the page: #no-call")
        document(f"{row}\n{row.replace('`call`', '`other`')}")
        self.complains(ways.check_counted_ways, "docs/ways.md:14: `other` is not counted")
        document(row)
        kept("way call: 3 functions in 2 files, aim 2 in 1", two[0], "  src/a/b.hpp: give retake")
        self.complains(ways.check_counted_ways, "`call` visits retake() of src/a/b.hpp, which is not there")
        kept("way call: 2 functions in 2 files, aim 2 in 1", *two)
        self.assertIn("`call` has 3 functions in 2 files", "\n".join(ways.check_counted_ways(tidy.Tree(self.root))))

    def test_each_command_has_a_row(self):
        head = "| command | sender | receiver | it carries | it may meet |\n|---|---|---|---|---|\n"

        def document(*names, line="Enumerators: `target` in [a.hpp](../../src/a.hpp)."):
            rows = "".join(f"| `{name}` | a | b | c | d |\n" for name in names)
            self.write("docs/protocols/commands.md", f"# Commands\n\n## Some\n\n{line}\n\n{head}{rows}")
        self.write("src/a.hpp", "struct frame {\n  enum class target : int {\n    shard = 0,  // of { one\n    member,\n  };\n};\n"
                   "class store {\n public:\n  virtual ~store() = default;\n  virtual int load(int of) = 0;\n"
                   "  virtual void keep(int) const {}\n  int number() const;\n};\n"
                   "struct batch {\n  int number = 0;\n  struct part {\n    int order;\n  };\n  std::vector<part> parts;\n"
                   "  bool empty() const { return parts.empty(); }\n};\n")
        document("shard", "member")
        self.passes(commands.check_commands)
        document("shard")
        self.complains(commands.check_commands, "commands.md:3: has no row for `member` of `target` in src/a.hpp")
        document("shard", "member", "other")
        self.complains(commands.check_commands, "`other` is no command of `target`")
        document("shard", "member", "member")
        self.complains(commands.check_commands, "`member` has two rows")
        document("load", "keep", line="Virtual functions: `store` in [a.hpp](../../src/a.hpp).")
        self.passes(commands.check_commands)
        document("load", line="Virtual functions: `store` in [a.hpp](../../src/a.hpp).")
        self.complains(commands.check_commands, "has no row for `keep`")
        document("number", "parts", line="Members: `batch` in [a.hpp](../../src/a.hpp).")
        self.passes(commands.check_commands)
        document("number", line="Members: `batch` in [a.hpp](../../src/a.hpp).")
        self.complains(commands.check_commands, "has no row for `parts`")
        document("shard", line="Enumerators: `gone` in [a.hpp](../../src/a.hpp).")
        self.complains(commands.check_commands, "src/a.hpp has no commands in `gone`")
        document("shard", line="")
        self.complains(commands.check_commands, "holds no table against the code")
        document("shard", "member")
        page = self.root / "docs/protocols/commands.md"
        page.write_text(page.read_text() + "| `gone` | a | b |  | d |\n")
        self.complains(commands.check_commands, "is no row of five cells that say something")

    def test_the_table_of_layers_is_the_rule(self):
        def row(layer):
            return f"| [`{layer}`](../src/{layer}/README.md) |"
        rows = [f"{row(layer)} {', '.join(f'`{b}`' for b in below) or '–'} | core | words |"
                for layer, below in layers.BELOW.items()]
        self.write("docs/architecture.md", "\n".join(rows) + "\n")
        self.passes(ways.check_layer_table)
        self.write("docs/architecture.md", "\n".join(rows[1:]) + "\n")
        self.complains(ways.check_layer_table, "has no row `base`")
        self.write("docs/architecture.md", "\n".join(rows) + "\n| `util` | `base` | core | words |\n")
        self.complains(ways.check_layer_table, "`util` is no layer")
        self.write("docs/architecture.md", "\n".join(rows).replace(f"{row('memory')} `base` |", f"{row('memory')} – |") + "\n")
        self.complains(ways.check_layer_table, "`memory` stands on base")
        self.write("docs/architecture.md", "\n".join(rows).replace("src/memory/README.md", "src/base/README.md") + "\n")
        self.complains(ways.check_layer_table, "`memory` does not link to src/memory/README.md")

    def test_each_relaxed_access_has_an_argument(self):
        self.write("docs/protocols/relaxed_orders.md", "# Relaxed\n\nFiles: `src/a.cpp`.\n\n- `count_`: a statistic\n")
        self.write("src/a.cpp", "count_.fetch_add(1, std::memory_order_relaxed);\nx.load();\n"
                                "y.store(1, std::memory_order_release);\n")
        self.passes(ways.check_relaxed_orders)
        self.write("src/a.cpp", "here.words[2].store(1,\n    std::memory_order_relaxed);\n")
        self.complains(ways.check_relaxed_orders, "relaxed_orders.md: has no argument for the relaxed accesses to `words` in src/a.cpp")

    def test_a_picture_is_what_its_text_says(self):
        self.write("docs/pictures/a.txt", "box a 0 0\n  A\nbox b 0 1\n  B\narrow a b: to\n")
        subprocess.run([sys.executable, "-B", ways.SCRIPT, self.root / "docs/pictures/a.txt"], check=True)
        self.passes(ways.check_pictures)
        self.write("docs/pictures/a.txt", "box a 0 0\n  A\nbox b 0 1\n  C\narrow a b: to\n")
        self.complains(ways.check_pictures, "docs/pictures/a.svg: is not what docs/pictures/a.txt says")
        self.write("docs/pictures/a.txt", "box a 0 0\n  A\narrow a c: to\n")
        self.complains(ways.check_pictures, "line 3 is no box")
        (self.root / "docs/pictures/a.txt").unlink()
        self.complains(ways.check_pictures, "docs/pictures/a.svg: cannot be drawn")

    def test_a_picture_of_figures_is_what_the_figures_say(self):
        kept = ways.FIGURES.parents[1] / "docs/pictures/figures.json"
        self.write("docs/pictures/figures.json", kept.read_text())
        for name in ("light", "dark"):
            self.write(f"docs/pictures/figures_{name}.svg", kept.with_name(f"figures_{name}.svg").read_text())
        self.write("docs/figures.md", (kept.parents[1] / "figures.md").read_text())
        self.passes(ways.check_pictures)
        (self.root / "docs/pictures/figures_light.svg").unlink()
        self.complains(ways.check_pictures, "docs/pictures/figures_light.svg: is not what docs/pictures/figures.json says")
        self.write("docs/pictures/figures.json", kept.read_text().replace('"commit": "', '"commit": "other '))
        problems = ways.check_pictures(tidy.Tree(self.root))
        self.assertIn("docs/figures.md: names another run than docs/pictures/figures.json", problems[0])
        self.assertEqual(len(problems), 3)

    def test_the_front_page_is_short(self):
        self.write("README.md", "a\n" * links.FRONT_PAGE_LINES_MAX)
        self.passes(links.check_front_page)
        self.write("README.md", "a\n" * (links.FRONT_PAGE_LINES_MAX + 1))
        self.complains(links.check_front_page, "README.md: 91 lines, more than 90")

    def test_every_source_is_built_and_every_header_used(self):
        self.write("src/base/a.cpp", '#include "base/a.hpp"\n')
        self.write("src/base/a.hpp", "")
        commands = self.root / "commands"
        commands.write_text(json.dumps([{"file": str(self.root / "src/base/a.cpp")}]))
        self.passes(links.check_built, commands)
        self.write("src/base/b.cpp", "")
        self.complains(links.check_built, "src/base/b.cpp: no target builds it", commands)
        self.write("build/together/c.cpp", f'#include "{self.root}/src/base/b.cpp"\n')
        together = self.root / "build/together/c.cpp"
        commands.write_text(json.dumps([{"file": str(self.root / "src/base/a.cpp")}, {"file": str(together)}]))
        self.passes(links.check_built, commands)
        together.unlink()
        commands.write_text(json.dumps([{"file": str(self.root / "src/base/a.cpp")}]))
        (self.root / "src/base/b.cpp").unlink()
        self.write("src/base/b.hpp", "")
        self.complains(links.check_built, "src/base/b.hpp: nothing includes it", commands)

    def test_no_new_circle_within_a_layer(self):
        edges = {("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "c")}
        self.assertEqual(sorted(map(sorted, rooms.cycles(edges))), [["a", "b"], ["c", "d", "e"]])
        self.assertEqual(len(rooms.feedback(edges)), 2)
        self.assertEqual(rooms.cycles(edges - rooms.feedback(edges)), [])
        listed = self.root / "rooms.txt"
        listed.write_text("unit a b\nunit e c a reason\n")
        with unittest.mock.patch.multiple(rooms, LIST=listed, graphs=lambda: {"unit": edges}):
            self.assertEqual(rooms.check(), [])
            listed.write_text("unit a b\n")
            self.assertEqual(rooms.check(), ["a new cycle of units: c includes d, d includes e, e includes c"])
            listed.write_text("unit a b\nunit b c\nunit e c\nunit x y\n")
            self.assertEqual(rooms.check(), ["rooms.txt: unit x y is no include any more: delete the line",
                                             "rooms.txt: unit b c closes no cycle any more: delete the line"])

    def test_each_label_is_checked_or_listed(self):
        self.write("src/a/one.hpp", "// Invariants\n//   A1  is asserted,\n//       also here.\n//   A2  is in a model.\n//   A3  is not.\n")
        self.write("src/a/one.cpp", '#include "a/one.hpp"\nvoid f() { TROUPE_INVARIANT(g(a, b) == 1, "A1"); }\n')
        self.write("src/b/two.hpp", "// Invariant A3: of another unit.\n")
        self.write("src/b/two.cpp", '#include "b/two.hpp"\nvoid f() { TROUPE_REQUIRE(true, "A3"); }\n')
        self.write("tests/models/one.cpp", '#include "a/one.hpp"\n// Checks A2 to A2.\n')
        with unittest.mock.patch.multiple(labels, ROOT=self.root, REASONS_MAX=1):
            found = labels.checks()
            self.assertEqual(found, {("a/one", "A1"): "an assertion", ("a/one", "A2"): "the model one", ("a/one", "A3"): None,
                                     ("b/two", "A3"): "an assertion"})
            self.assertEqual(len(labels.compare(found, {})), 1)
            self.assertEqual(labels.compare(found, {("a/one", "A3"): ""}), [])
            self.assertEqual(len(labels.compare(found, {("a/one", "A3"): "why", ("a/one", "A2"): "why", ("a/one", "A9"): ""})), 3)

    def test_a_label_may_be_checked_in_another_folder_or_by_a_model_of_a_header_beside_it(self):
        self.write("src/a/one.hpp", "// Invariants\n//   A1  is asserted elsewhere.\n//   A2  is in a model.\n//   A3  is not.\n")
        self.write("src/a/one.cpp", '#include "a/one.hpp"\n#include "a/part.hpp"\n')
        self.write("src/a/part.hpp", "// A part.\n")
        self.write("src/b/two.cpp", 'void f() { TROUPE_INVARIANT(true, "one.A1"); }\nvoid g() { TROUPE_INVARIANT(true, "A3"); }\n')
        self.write("tests/models/part.cpp", '#include "a/part.hpp"\n// Checks A2.\n')
        with unittest.mock.patch.multiple(labels, ROOT=self.root, REASONS_MAX=1):
            found = labels.checks()
            self.assertEqual(found, {("a/one", "A1"): "an assertion of b/two", ("a/one", "A2"): "the model part", ("a/one", "A3"): None})
            self.write("src/b/two.cpp", 'void f() { TROUPE_INVARIANT(true, "one.A9"); }\n')
            self.assertEqual(labels.compare({}, {}), ["b/two: its assertion cites one.A9, which no unit has"])

    def test_a_class_is_small_and_has_few_flags(self):
        header = ("namespace n {\n// About it.\nclass big {\n public:\n  void f();\n  class part { void g(); };\n  struct apart;\n"
                  "  bool is_done() const { return a_; }\n\n private:\n"
                  "  bool a_ = false, b_{true};  // bool none_;\n  std::atomic<bool> c_{false};\n"
                  "  const bool fixed_ = true;\n  static constexpr bool no_ = true;\n  bool d_ : 1 = false;\n};\n}\n")
        source = ("namespace n {\nnamespace {\nstruct helper { bool x, y, z; };\nvoid help() {\n}\n}\nstruct big::apart {\n};\n"
                  "// Why.\nvoid big::f() {\n  help();\n}\nvoid big::part::g() {\n}\n}\n")
        found = classes.read([("a.hpp", header), ("a.cpp", source)])
        self.assertEqual(found["n::big"].lines, {"a.hpp": 15, "a.cpp": 6})
        self.assertEqual(found["n::big"].flags, ["a_", "b_", "c_", "d_"])
        self.assertEqual(found["n::big::apart"].size, 2)
        with unittest.mock.patch.multiple(classes, LINES_MAX=20, FLAGS_MAX=3, OPEN_MAX=0):
            self.assertEqual(len(classes.compare(found, {})), 2)
        with unittest.mock.patch.multiple(classes, LINES_MAX=21, FLAGS_MAX=3, OPEN_MAX=0):
            self.assertEqual(len(classes.compare(found, {})), 1)
            self.assertEqual(classes.compare(found, {"n::big": (4, "a reason")}), [])
            self.assertEqual(len(classes.compare(found, {"n::big": (3, "a reason")})), 1)
            self.assertEqual(len(classes.compare(found, {"n::big": (5, "a reason"), "n::gone": (4, "a reason")})), 2)
            self.assertEqual(len(classes.compare(found, {"n::big": (4, "")})), 1)

    def test_the_readme_of_a_layer_lists_its_rooms_from_the_ground_up(self):
        def check():
            return rooms.check_readmes(self.root, {"a": {"a", "a/low"}, "b": {"b"}}, {("a", "a/low")})
        self.write("src/b/README.md", "# b\n\n[x](../../docs/protocols/x.md)\n")
        self.write("docs/protocols/x.md", "")
        self.assertEqual(check(), ["src/a/README.md: is missing: say what the layer is for, and list its rooms"])
        self.write("src/a/README.md", "# a\n\n- `low/`: x\n- `./`: y\n")
        self.assertEqual(check(), [])
        self.write("src/a/README.md", "# a\n\n- `./`: y\n- `low/`: x\n")
        self.assertEqual(check(), ["src/a/README.md: lists a/ before a/low/, which it includes"])
        self.write("src/a/README.md", "# a\n\n- `./`: y\n- `high/`: x\n")
        self.assertEqual(check(), ["src/a/README.md: does not list the room a/low/",
                                   "src/a/README.md: lists a/high/, which is no room"])
        self.write("src/a/README.md", "# a\n\n- `low/`: x\n- `./`: y\n")
        self.write("src/b/README.md", "# b\n")
        self.assertEqual(check(), ["docs/protocols/x.md: no README of a layer links to it"])

    def counted(self):
        return {key: found for key, found in words.occurrences(self.root).items() if found}

    def test_phrases_are_counted_where_they_are_read(self):
        self.write("README.md", "# What\n\nIt waits,\nso the one that of\nthe other one, too. `what` [a](what.md)\n"
                                "```cpp\nwhat\n```\nWhat is it? So does it.\n")
        self.write("CHANGELOG.md", "# a\n\n## 2\n\nIt has\ngone.\n\n## 1\n\nIt has come.\n")
        self.write("docs/decisions/a.md", "what\n")
        self.write("src/a/README.md", "nobody\n")
        self.assertEqual(self.counted(), {
            ("guide", "what"): [("README.md", 1)], ("guide", "so"): [("README.md", 4), ("README.md", 9)],
            ("guide", "that_of"): [("README.md", 4)], ("guide", "bare_one"): [("README.md", 5)],
            ("guide", "too"): [("README.md", 5)], ("guide", "come_gone"): [("CHANGELOG.md", 6)],
            ("pages", "person"): [("src/a/README.md", 1)]})

    def test_phrases_are_counted_in_comments_and_error_texts_and_members_in_code(self):
        self.write("src/a/a.cpp", 'auto x = "// what";  // that\n// of it, what()\nint what = of_->in.made;\n'
                                  'throw error("troupe: a: "\n"waits for what");\n')
        self.write("src/a/b.cpp", "#include <netinet/in.h>\nmessage.to.key + reminder->to.kind;\nto.size();\n")
        self.write("include/a.hpp", "/* It goes\n   on. */ one.x; none.x; one + .5\n")
        self.write("src/a/a.test.cpp", "// what\none.x\n")
        self.assertEqual(self.counted(), {
            ("sources", "that_of"): [("src/a/a.cpp", 2)], ("errors", "what"): [("src/a/a.cpp", 5)],
            ("members", "of"): [("src/a/a.cpp", 3)], ("members", "in"): [("src/a/a.cpp", 3)],
            ("members", "to"): [("src/a/b.cpp", 3)],
            ("headers", "phrase"): [("include/a.hpp", 2)], ("members", "one"): [("include/a.hpp", 2)],
            ("declared", "what"): [("src/a/a.cpp", 3)]})

    def test_declarations_of_a_name_that_says_nothing_are_counted(self):
        self.write("src/a/a.cpp", "void a(cell& of, list<int>&& one, int what);\nx* in_ = nullptr;\nauto [who, to] = b;\n"
                                  "for (auto& one : all) [its = who, &who] {};\nvoid copy(x& from, x& to, text made = {});\n"
                                  "return of;\nif (one > what) f(a, one), g(a * of, a && in);\nint what(int all);\n"
                                  "void pipe(stream in, stream out);\n")
        self.write("src/a/a.test.cpp", "int one = 1;\n")
        self.assertEqual(self.counted(), {
            ("declared", "one"): [("src/a/a.cpp", 1), ("src/a/a.cpp", 4)], ("declared", "of"): [("src/a/a.cpp", 1)],
            ("declared", "what"): [("src/a/a.cpp", 1)], ("declared", "in"): [("src/a/a.cpp", 2)],
            ("declared", "who"): [("src/a/a.cpp", 3)], ("declared", "its"): [("src/a/a.cpp", 4)],
            ("declared", "made"): [("src/a/a.cpp", 5)]})

    def test_no_phrase_is_added(self):
        def git(*command):
            subprocess.run(["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b", *command],
                           check=True, capture_output=True)
        with unittest.mock.patch.object(words, "LIST", self.root / "words.txt"):
            self.write("README.md", "what\n" * 12)
            self.assertIn("words.txt: guide what is missing: run `words.py update`", words.check(self.root))
            words.update(self.root)
            self.assertEqual(words.check(self.root), [])
            git("init", "-q")
            git("add", ".")
            git("commit", "-q", "-m", "a")
            self.write("README.md", "what\n" * 6 + "\nsay what\n\n" + "what\n" * 6)
            new = "13 of what in guide, 12 are allowed; the newest, to be written in other words: "
            self.assertEqual(words.check(self.root), [new + "README.md:8"])
            words.update(self.root)
            self.assertEqual(words.check(self.root), [new + "README.md:8"])
            self.write("src/a/a.cpp", "\nvoid f(int of);\n")
            new_name = "1 of of in declared, 0 are allowed; the newest, to be written in other words: src/a/a.cpp:2"
            self.assertEqual(words.check(self.root), [new + "README.md:8", new_name])
            (self.root / "src/a/a.cpp").unlink()
            self.write("README.md", "what\n")
            fewer = "1 of what in guide, 12 are allowed: lower the bound with `words.py update`"
            self.assertEqual(words.check(self.root), [fewer])
            words.update(self.root)
            self.assertEqual(words.check(self.root), [])
            self.write("words.txt", (self.root / "words.txt").read_text() + "guide x 1\n")
            self.assertEqual(words.check(self.root), ["words.txt: guide x is no pattern any more: run `words.py update`"])

    def test_the_list_of_messages_is_as_the_sources(self):
        self.write("src/a/a.cpp", 'throw error("troupe: a: "\n    "the file " + path_ + " has " + std::to_string(size) +\n'
                                  '            (is_new ? " new" : " old") + \'.\');  // "troupe: no text"\n'
                                  'return bad ? "troupe: b" : std::string("troupe: c ") + name_of(kind) + ", d";\n'
                                  '#define E(verb) "troupe: " verb ": e"\n')
        self.write("src/a/a.test.cpp", 'auto other = "troupe: f";\n')
        texts = ["troupe: a: the file {path} has {size}{ new| old}.", "troupe: b", "troupe: c {kind}, d", "troupe: {verb}: e"]
        with unittest.mock.patch.object(messages, "LIST", self.root / "messages.txt"):
            stale = "messages.txt is stale: run `messages.py update`, and read what changed"
            self.assertEqual(messages.check(self.root), [stale])
            messages.LIST.write_text(messages.listed(self.root))
            self.assertEqual(messages.LIST.read_text().splitlines()[1:], ["", "src/a/a.cpp"] + ["  " + text for text in texts])
            self.assertEqual(messages.check(self.root), [])
            self.write("src/a/b.hpp", 'const char* text = "troupe: g: " + name + " has gone";\n')
            self.assertEqual(messages.check(self.root), ["src/a/b.hpp: come_gone: troupe: g: {name} has gone", stale])


if __name__ == "__main__":
    unittest.main()
