"""The driver's pure parts: no program is built or measured here. Run: python3 -m unittest, with this file."""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import build
import instructions
import measure
import programs
import report
import rows
from measure import Refused, Samples
from programs import Contestant, Program
from report import Line, Summary
from rows import Case, Row


def load_command_line():
    """__main__.py under a name of its own, since the test runner has taken that one."""
    spec = importlib.util.spec_from_file_location("driver_main", HERE / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(**changes) -> Row:
    plain = dict(name="actor/x", unit="ns/message", better="less", program="actors", bench="x", size=10,
                 check=rows.same, question="")
    return Row(**{**plain, **changes})


def contestant(name: str, **changes) -> Contestant:
    program = Program(HERE, (), HERE, lambda workers: (name,))
    return Contestant(name, name, {"actors": program}, **changes)


def line(troupe, floor, peers, **changes) -> Line:
    def exactly(value):
        return Summary(value, value, value) if value is not None else None

    return Line(Case(row(**changes), 1), exactly(troupe), exactly(floor),
                {name: exactly(value) for name, value in peers.items()})


class Instructions(unittest.TestCase):
    def test_each_operation_has_a_kept_count_and_an_aim(self):
        compiler, kept = instructions.read_kept()
        self.assertIn("g++", compiler)
        self.assertEqual(list(kept), [operation.name for operation in instructions.OPERATIONS])
        self.assertTrue(all(counted > 0 and aim > 0 for counted, aim in kept.values()))

    def test_costs_of_calls_are_counted_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile")
            Path(path).write_text("ob=(1) /bin/a\nfn=(1) main\n5 10\ncob=(2) /lib/b\ncfn=(2) work\ncalls=3 1\n6 300\n+1 4\n"
                                  "ob=(2)\nfn=(2)\n1 300\n")
            self.assertEqual(instructions.self_costs(path), {"/bin/a": 14, "/lib/b": 300})

    def test_calls_of_a_fibonacci(self):
        self.assertEqual([instructions.fib_calls(n) for n in (1, 2, 3, 4)], [1, 3, 5, 9])


class Rows(unittest.TestCase):
    def test_names_say_workers_only_where_there_are_several(self):
        names = [case.name for case in rows.all_cases()]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("actor/ping_pong@1", names)
        self.assertIn("actor/ping_pong@2", names)
        self.assertIn("sched/idle_cpu", names)

    def test_glob_matches_with_and_without_workers(self):
        def chosen(*globs):
            return [case.name for case in rows.select(list(globs))]

        self.assertEqual(chosen("actor/big"), ["actor/big@1", "actor/big@2"])
        self.assertEqual(chosen("actor/big@2"), ["actor/big@2"])
        self.assertEqual(chosen("sched/wake*", "*scaling"),
                         ["sched/wake_latency_p50", "sched/wake_latency_p99", "sched/scaling"])
        self.assertEqual(chosen(), [case.name for case in rows.all_cases()])

    def test_glob_that_matches_nothing_lists_the_rows(self):
        with self.assertRaisesRegex(rows.NoSuchRow, r"(?s)'nothing\*'.*actor/ping_pong@1.*sched/scaling"):
            rows.select(["actor/*", "nothing*"])

    def test_rows_that_read_one_line_share_its_run(self):
        groups = rows.by_run(rows.select(["sched/wake*"]))
        self.assertEqual([len(cases) for cases in groups.values()], [2])


class Peers(unittest.TestCase):
    def test_list_is_taken_in_the_tables_order(self):
        self.assertEqual([peer.name for peer in programs.choose_peers("tokio, go")], ["go", "tokio"])
        self.assertEqual(programs.choose_peers("none"), [])
        self.assertEqual(len(programs.choose_peers(None)), len(programs.PEERS))

    def test_unknown_peer_lists_the_peers(self):
        with self.assertRaisesRegex(programs.NoSuchPeer, "'akka'.*go, erlang, tokio, caf"):
            programs.choose_peers("go,akka")

    def test_whoever_is_asked_has_the_program_or_says_why_not(self):
        for peer in programs.PEERS:
            for case in rows.all_cases():
                answers = (case.row.program in peer.programs or case.row.bench in peer.lacks or case.row.only_ours
                           or programs.kind_of(case.row.program) != peer.kind)
                self.assertTrue(answers, f"{peer.name}, {case.name}")

    def test_one_product_is_built_in_one_way(self):
        """Programs of a contestant are told apart by their products: prepare() builds each product once."""
        for everybody in (programs.TROUPE, programs.FLOOR, *programs.PEERS):
            ways: dict[Path, set] = {}
            for program in everybody.programs.values():
                if not program.knows_itself:
                    ways.setdefault(program.product, set()).add(program.build)
            for product, builds in ways.items():
                self.assertEqual(len(builds), 1, f"{everybody.name}: {product.name}")

    def test_missing_peer_gets_one_line_that_installs_it(self):
        missing = contestant("akka", needs=("no-such-command-here",), packages=("libakka-dev",))
        self.assertFalse(build.is_installed(missing))
        self.assertTrue(build.hint(missing).endswith("./bench --setup --peers akka"))
        self.assertEqual(build.install_command([missing])[-1], "libakka-dev")


class Servers(unittest.TestCase):
    def names(self, who: Contestant, program: str) -> list[str]:
        return [Path(part).name for part in who.programs[program].start(1)]

    def peer(self, name: str) -> Contestant:
        return next(peer for peer in programs.PEERS if peer.name == name)

    def test_load_generator_starts_the_server(self):
        self.assertEqual(self.names(programs.TROUPE, "echo"), ["echo_load", "bench_echo"])
        self.assertEqual(self.names(programs.TROUPE, "tls"), ["http_load_tls", "bench_tls"])
        self.assertEqual(self.names(self.peer("nginx"), "http"), ["http_load", "nginx_http.sh"])
        self.assertEqual(self.names(programs.FLOOR, "http"), ["http_load", "http_epoll"])

    def test_database_is_started_before_the_load_generator(self):
        ours, rival = self.names(programs.TROUPE, "postgres_web"), self.names(self.peer("tokio_postgres"), "postgres_web")
        self.assertEqual((ours, rival), (["with_postgres.sh", "db_load", "bench_db_web"], ["with_postgres.sh", "db_load", "web"]))

    def test_memory_of_a_handler_is_all_that_differs(self):
        ours, rival = self.names(programs.TROUPE, "json"), self.names(self.peer("malloc"), "json")
        self.assertEqual((ours, rival), (["http_load", "bench_http", "context"], ["http_load", "bench_http", "malloc"]))

    def test_every_servers_row_has_its_cpu_time_beside_it(self):
        for one in rows.ROWS:
            if one.program in ("echo", "http", "tls", "postgres_web") and one.better == "more":
                beside = next((other for other in rows.ROWS if other.name == one.name + "_cpu"), None)
                self.assertIsNotNone(beside, one.name)
                self.assertEqual((beside.value, beside.better), ("cpu_us", "less"))
                self.assertEqual(Case(beside, one.workers[0]).run, Case(one, one.workers[0]).run)

    def test_pipelines_are_counted_in_whole(self):
        for one in rows.ROWS:
            if one.bench.endswith("_pipelined"):
                self.assertEqual(one.size % 16, 0, one.name)

    def test_header_of_a_load_generator_is_watched(self):
        watched = [path.name for path in self.peer("nginx").programs["http"].also_watch]
        self.assertLessEqual({"load.cpp", "answers.hpp", "served.hpp", "document.hpp", "server_process.hpp"}, set(watched))


class Builds(unittest.TestCase):
    def test_newer_source_or_other_flags_mean_a_new_build(self):
        with tempfile.TemporaryDirectory() as folder:
            source, product = Path(folder, "source"), Path(folder, "out", "program")
            product.parent.mkdir()
            source.mkdir()
            code = source / "code"
            code.write_text("")
            program = Program(source, (("cp", "code", str(product)),), product, lambda workers: ())
            self.assertFalse(build.is_up_to_date(program))
            build.build(contestant("one"), program)
            os.utime(code, (0, 0))
            self.assertTrue(build.is_up_to_date(program))
            other = Program(source, (("cp", "-p", "code", str(product)),), product, lambda workers: ())
            self.assertFalse(build.is_up_to_date(other))
            os.utime(code, (2**33, 2**33))
            self.assertFalse(build.is_up_to_date(program))

    def test_failed_build_shows_the_command_and_what_it_said(self):
        failing = Program(HERE, (("sh", "-c", "echo because; exit 1"),), HERE / "none", lambda workers: ())
        with self.assertRaisesRegex(build.BuildFailed, "(?s)one cannot be built.*exit 1.*because"):
            build.build(contestant("one"), failing)


class Measuring(unittest.TestCase):
    def measure(self, answers, names=("a", "b"), repeat=2, **changes):
        """Runs with a dictionary of answers by contestant; also the order of who was asked."""
        asked = []

        def execute(command):
            name = command[3] if command[0] == "taskset" else command[0]
            asked.append(name)
            return answers[name]

        the_row = row(**changes)
        contestants = [contestant(name) for name in names]
        samples = measure.measure(Case(the_row, 1).run, [the_row], contestants, repeat, lambda _: None, execute)
        return samples, asked

    def test_contestants_take_turns(self):
        samples, asked = self.measure({"a": "value=1 check=10", "b": "value=2 check=10"}, repeat=3)
        self.assertEqual(asked, ["a", "b"] * 3)
        self.assertEqual([sample["value"] for sample in samples.of["b"]], [2, 2, 2])
        self.assertEqual(samples.failures, [])

    def test_wrong_check_is_refused_and_not_asked_again(self):
        samples, asked = self.measure({"a": "value=1 check=9", "b": "value=2 check=10"})
        self.assertEqual(asked, ["a", "b", "b"])
        self.assertNotIn("a", samples.of)
        self.assertRegex(samples.failures[0], "check is 9, not 10\n  taskset -c 0 a x 1 10")

    def test_only_our_own_unfairness_is_a_failure(self):
        unfair = "value=1 check=10 fairness=1.6"
        samples, _ = self.measure({"troupe": unfair, "go": unfair}, ("troupe", "go"), 1, limits={"fairness": 1.5})
        self.assertEqual(len(samples.failures), 1)
        self.assertRegex(samples.failures[0], "troupe: fairness is 1.6, over 1.5")
        self.assertEqual(set(samples.of), {"troupe", "go"})

    def test_output_that_is_no_figure_is_refused(self):
        for text in ("", "hello", "value=1", "check=1", "value=x check=1", "value=nan check=1", "value=-1 check=1",
                     "value=1 check=1.5"):
            with self.subTest(text), self.assertRaises(Refused):
                measure.parse(text)

    def test_one_worker_is_pinned_and_sizes_may_differ(self):
        small = contestant("go", sizes={"x": (5, "why")})
        run = Case(row(), 1).run
        self.assertEqual(measure.command_line(small, run), ("taskset", "-c", "0", "go", "x", "1", "5"))
        self.assertEqual(measure.command_line(contestant("go"), Case(row(), 2).run), ("go", "x", "2", "10"))

    def test_program_that_fails_shows_what_it_said(self):
        with self.assertRaisesRegex(Refused, "status 3: because"):
            measure.run_once(("sh", "-c", "echo because >&2; exit 3"))
        with self.assertRaisesRegex(Refused, "could not be started"):
            measure.run_once(("/no/such/program",))


class Report(unittest.TestCase):
    def test_summary_is_median_least_and_greatest(self):
        self.assertEqual(report.summarize([3.0, 1.0, 2.0]), Summary(2.0, 1.0, 3.0))
        self.assertEqual(report.summarize([4.0, 1.0, 2.0, 3.0]), Summary(2.5, 1.0, 4.0))
        self.assertIsNone(report.summarize([]))

    def test_ratio_is_to_the_best_rival_in_the_rows_own_words(self):
        def ratio(*arguments, **changes):
            return report.versus_best(line(*arguments, **changes))

        self.assertEqual(ratio(50, None, {"go": 300, "tokio": 255}), "5.1x faster (tokio)")
        self.assertEqual(ratio(60, None, {"go": 50}), "1.20x slower (go)")
        self.assertEqual(ratio(60, None, {"go": 600}, unit="bytes/actor"), "10.0x smaller (go)")
        self.assertEqual(ratio(3, None, {"go": 6, "caf": 2}, better="more", unit="times"), "2.0x less (go)")
        self.assertEqual(ratio(0.5, None, {"go": 0.1}, unit="ms/s"), "5.0x more (go)")

    def test_a_bare_loop_is_no_rival(self):
        self.assertEqual(report.versus_best(line(100, 110, {"tokio": 95, "uring": 120}, better="more", unit="requests/s")), "1.05x more (tokio)")
        self.assertEqual(report.versus_best(line(100, 110, {"uring": 120})), "-")

    def test_ratio_needs_both_sides(self):
        for troupe, peers in ((None, {"go": 1}), (1, {}), (1, {"go": 0}), (0, {"go": 1})):
            self.assertEqual(report.versus_best(line(troupe, None, peers)), "-")
        self.assertEqual(report.versus_floor(line(30, 20, {})), "1.50x")
        self.assertEqual(report.versus_floor(line(30, None, {})), "-")

    def test_cells_keep_three_digits(self):
        self.assertEqual(report.cell(Summary(1234.5, 99.94, 0.02561)), "1,234 (99.9–0.026)")
        self.assertEqual(report.cell(Summary(7.126, 7, 12.34)), "7.13 (7.00–12.3)")
        self.assertEqual(report.cell(None), "-")

    def test_table_lines_stand_under_the_header(self):
        text = report.table_line(line(50, 25, {"go": 100}), ["go", "caf"])
        head = report.header(["go", "caf"])
        for column, entry in (("troupe", "50.0 (50.0–50.0)"), ("go", "100 (100–100)"), ("caf", "-"),
                              ("ours/floor", "2.00x")):
            end = head.index(column) + len(column)
            self.assertTrue(text[:end].endswith(entry), f"{entry} under {column}")

    def test_line_reads_its_rows_key_and_notes_fairness(self):
        case = Case(row(value="p99", limits={"fairness": 1.5}), 1)
        samples = Samples({"troupe": [{"value": 1, "p99": 9, "fairness": 1.1}], "floor": [], "go": [{"p99": 7}]})
        made = report.make_line(case, samples)
        self.assertEqual(made.troupe, Summary(9, 9, 9))
        self.assertIsNone(made.floor)
        self.assertEqual(made.peers, {"go": Summary(7, 7, 7)})
        self.assertEqual(made.notes, ["fairness: troupe 1.10, go 0.00"])

    def test_json_has_the_agreed_shape(self):
        self.assertEqual(report.as_json([line(50, None, {"go": 100})]), [
            {"row": "actor/x@1", "unit": "ns/message", "better": "less",
             "troupe": {"median": 50, "min": 50, "max": 50}, "floor": None,
             "peers": {"go": {"median": 100, "min": 100, "max": 100}}, "floors": {}}])


class CommandLine(unittest.TestCase):
    def refuse(self, *arguments) -> str:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            load_command_line().parse_arguments(list(arguments))
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_bad_options_are_refused_with_a_reason(self):
        self.assertIn("actor/ping_pong@1", self.refuse("--rows", "nothing"))
        self.assertIn("erlang", self.refuse("--peers", "akka"))
        self.assertIn("--repeat", self.refuse("--repeat", "0"))
        self.assertIn("--repeat", self.refuse("--repeat", "many"))
        self.assertIn("--json", self.refuse("--json", "/no/such/folder/file"))
        self.assertIn("--unknown", self.refuse("--unknown"))

    def test_figures_that_cannot_be_written_are_an_error_with_a_reason(self):
        with self.assertRaises(SystemExit) as end:
            load_command_line().write_figures(Path("/dev/full"), [line(50, None, {})])
        self.assertIn("/dev/full: No space left on device", end.exception.code)

    def test_defaults_are_everything_five_times(self):
        options = load_command_line().parse_arguments([])
        self.assertEqual((len(options.cases), options.repeat), (len(rows.all_cases()), 5))
        self.assertEqual(options.contestants, list(programs.PEERS))


if __name__ == "__main__":
    unittest.main()
