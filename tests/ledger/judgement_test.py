"""How a run is judged by the ledger: the words and the exit of scripts/ledger.py and scripts/test_report.py."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import flakes  # noqa: E402
import junit  # noqa: E402
import ledger  # noqa: E402
import repeats  # noqa: E402
import test_report  # noqa: E402

CONDITIONS = """# comment
needs threads | setting | the settings with threads
needs --deep | deep | ./test --deep
needs no-such-tool | tool | apt-get install no-such-package-anywhere
needs dash | tool | apt-get install dash, then try again
needs root | machine | run as root
"""


def gtest(name, passed, skips=(), failed=0):
    """A suite of GoogleTest as ctest writes it; SKIPS are the reasons."""
    lines = [f"[==========] {passed + len(skips) + failed} tests from 1 test suite ran. (1 ms total)"]
    lines[:0] = [f"/src/x.cpp:{n}: Skipped\n{reason}\n" for n, reason in enumerate(skips, 10)]
    lines.append(f"[  PASSED  ] {passed} tests.")
    if skips:
        lines.append(f"[  SKIPPED ] {len(skips)} tests.")
    lines += [f"[  FAILED  ] suite.case_{'abc'[n]}" for n in range(failed)]
    status = "fail" if failed else "run"
    return f'<testcase name="{name}" status="{status}"><system-out>{escape(chr(10).join(lines))}</system-out></testcase>'


def failed(name, output, message="Failed"):
    return f'<testcase name="{name}" status="fail"><failure message="{message}"/><system-out>{escape(output)}</system-out></testcase>'


def script(name, output, skipped=False):
    head = f'<testcase name="{name}" status="{"notrun" if skipped else "run"}">'
    middle = '<skipped message="SKIP_RETURN_CODE=77"/>' if skipped else ""
    return f"{head}{middle}<system-out>{escape(output)}</system-out></testcase>"


class Judged(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "skips.txt").write_text(CONDITIONS)

    def judge(self, *cases, ledger_text=None, options=(), deep=""):
        """((passed, failed, skipped), standard error) of the report of a run with these cases."""
        if ledger_text is not None:
            (self.folder / "release.txt").write_text(ledger_text)
        junit = self.folder / "junit.xml"
        junit.write_text("<testsuite>" + "".join(cases) + "</testsuite>")
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, TROUPE_DEEP=deep), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(test_report.main([str(junit), "release", "--ledger", str(self.folder), *options]), 0)
        return tuple(map(int, out.getvalue().split())), err.getvalue()


class Run(Judged):
    def text(self):
        return (self.folder / "release.txt").read_text()

    def test_the_same_run_passes(self):
        counts, said = self.judge(gtest("a/one", 3), script("b/two", "fine"), ledger_text="a/one 3\nb/two 1\n")
        self.assertEqual((counts, said), ((4, 0, 0), ""))

    def test_a_case_fewer_fails_and_says_what_to_do(self):
        counts, said = self.judge(gtest("a/one", 3), ledger_text="a/one 5\n")
        self.assertEqual(counts, (3, 1, 0))
        for words in ("--- ledger: a/one", "a/one has 5 cases in tests/ledger/release.txt and ran 3: 2 fewer",
                      "  -2 REASON", "./test --in release --only '^a/one$'"):
            self.assertIn(words, said)

    def test_a_missing_suite_fails_but_not_where_others_were_asked_for(self):
        counts, said = self.judge(gtest("a/one", 3), ledger_text="a/one 3\nb/two 1\n")
        self.assertEqual(counts, (3, 1, 0))
        self.assertIn("b/two has 1 cases in tests/ledger/release.txt and is missing: 1 fewer", said)
        self.assertEqual(self.judge(gtest("a/one", 3), options=["--partial"])[0], (3, 0, 0))
        self.assertEqual(self.judge(gtest("a/one", 2), options=["--partial"])[0], (2, 1, 0))

    def test_a_removal_with_its_reason_is_allowed(self):
        text = "a/one 5\n  -2 moved to a/slow, which takes a minute\nb/two 1\n  -1 b/two tested a class that is gone\n"
        self.assertEqual(self.judge(gtest("a/one", 3), ledger_text=text)[0], (3, 0, 0))
        self.assertEqual(self.judge(gtest("a/one", 2), ledger_text=text)[0], (2, 1, 0))

    def test_growth_passes_and_is_recorded_on_demand(self):
        counts, said = self.judge(gtest("a/one", 4), gtest("c/new", 2), ledger_text="a/one 3\nb/two 1\n", options=["--partial"])
        self.assertEqual(counts, (6, 0, 0))
        self.assertIn("release: 3 cases are not in the ledger yet; ./test --update-ledger adds them", said)
        self.assertEqual(self.text(), "a/one 3\nb/two 1\n")
        self.judge(gtest("a/one", 4), gtest("c/new", 2), options=["--partial", "--update-ledger"])
        self.assertEqual(self.text().splitlines()[1:], ["a/one 4", "b/two 1", "c/new 2"])

    def test_a_raise_keeps_removals_and_never_lowers(self):
        text = "a/one 5\n  -2 moved to a/slow, which takes a minute\nb/two 4\n"
        counts, _ = self.judge(gtest("a/one", 4), gtest("b/two", 3), ledger_text=text, options=["--update-ledger"])
        self.assertEqual(counts, (7, 1, 0))
        self.assertEqual(self.text().splitlines()[1:], ["a/one 6", "  -2 moved to a/slow, which takes a minute", "b/two 4"])
        self.assertEqual(self.judge(gtest("a/one", 4), gtest("b/two", 4))[0], (8, 0, 0))

    def test_the_first_ledger_is_made_on_demand(self):
        self.assertEqual(self.judge(gtest("b/two", 2), gtest("a/one", 1))[0], (3, 0, 0))
        self.assertFalse((self.folder / "release.txt").exists())
        self.judge(gtest("b/two", 2), gtest("a/one", 1), options=["--update-ledger"])
        self.assertEqual(self.text().splitlines()[1:], ["a/one 1", "b/two 2"])

    def test_a_failed_suite_is_one_failure_and_raises_nothing(self):
        counts, said = self.judge(gtest("a/one", 2, failed=1), ledger_text="a/one 9\n", options=["--update-ledger"])
        self.assertEqual(counts, (2, 1, 0))
        self.assertNotIn("ledger", said)
        self.assertEqual(self.text(), "a/one 9\n")

    def test_a_case_of_another_setting_is_no_skip_and_no_case(self):
        cases = gtest("a/one", 3, ["needs threads: nothing runs beside it"] * 2)
        counts, said = self.judge(cases, ledger_text="a/one 3\n")
        self.assertEqual(counts, (3, 0, 0))
        self.assertIn("release: 2 cases are left to another setting, configuration or --deep", said)
        self.assertEqual(self.judge(cases, ledger_text="a/one 4\n")[0], (3, 1, 0), "a case that ran skips now")

    def test_a_skip_of_the_machine_is_counted_and_excused_by_its_number(self):
        cases = gtest("a/one", 3, ["needs no-such-tool", "needs root: for a port"])
        self.assertEqual(self.judge(cases, ledger_text="a/one 5\n")[0], (3, 0, 2))
        self.assertEqual(self.judge(cases, ledger_text="a/one 6\n")[0], (3, 1, 2))

    def test_a_skip_without_a_listed_reason_fails(self):
        for reason, words in (("", "without a reason"), ("not today", "for an unlisted reason: not today")):
            counts, said = self.judge(gtest("a/one", 3, [reason]), ledger_text="a/one 3\n")
            self.assertEqual(counts, (3, 1, 1))
            self.assertIn(words, said)

    def test_a_suite_whose_output_was_cut_fails(self):
        mark = "...\n[This part of the test output was removed since it exceeds the threshold of 200 bytes.]\n..."
        lines = ["a.cpp:1: Skipped\nneeds root", mark, "[  PASSED  ] 3 tests.", "[  SKIPPED ] 1 test, listed below:"]
        counts, said = self.judge(script("a/one", "\n".join(lines)), ledger_text="a/one 3\n")
        self.assertEqual(counts, (0, 1, 0))
        self.assertIn("a/one wrote more than ctest keeps", said)

    def test_skipping_for_want_of_an_installed_package_fails(self):
        conditions = ledger.parse_conditions(CONDITIONS, "skips.txt")
        suite = type("suite", (), {"name": "a/one", "skips": ["needs dash"]})
        complaints, skipped, _, _ = ledger.judge_skips([suite], conditions, installed=lambda package: package == "dash")
        self.assertEqual((len(complaints), skipped), (1, 1))
        self.assertIn("for want of what is installed: needs dash", complaints[0][1])
        self.assertEqual(ledger.judge_skips([suite], conditions, installed=lambda package: False)[0], [])

    def test_under_deep_nothing_is_left_to_deep(self):
        cases = gtest("a/one", 3, ["needs --deep: takes a minute"])
        self.assertEqual(self.judge(cases, ledger_text="a/one 3\n")[0], (3, 0, 0))
        counts, said = self.judge(cases, deep="1")
        self.assertEqual(counts, (3, 1, 0))
        self.assertIn("skipped a case under --deep", said)

    def test_scripts_name_their_reasons(self):
        whole = script("a/one", "a: skipped: needs root: namespaces", skipped=True)
        part = script("b/two", "two: partly skipped: needs no-such-tool\nfine")
        self.assertEqual(self.judge(whole, part, ledger_text="a/one 1\nb/two 1\n")[0], (1, 0, 2))
        counts, said = self.judge(script("a/one", "nothing", skipped=True), script("b/two", ""), ledger_text="")
        self.assertEqual(counts, (1, 1, 1))
        self.assertIn("a/one skipped a case without a reason", said)

    def test_a_malformed_ledger_fails(self):
        for text, words in (("a/one\n", "is neither `SUITE COUNT`"), ("  -1 why it is gone\n", "is neither"),
                            ("b/two 1\na/one 1\n", "is not in order"), ("a/one 1\na/one 1\n", "each suite has one line"),
                            ("a/one 2\n  -1 gone\n", "is no reason"), ("a/one 2\n  -3 moved to another suite\n", "more cases")):
            counts, said = self.judge(gtest("a/one", 1), ledger_text=text)
            self.assertEqual(counts, (1, 1, 0), text)
            self.assertIn(words, said)


class Flakes(Judged):
    def run_again(self, first, *further):
        """What the report says of a first run and of those after it."""
        paths = []
        for number, cases in enumerate(further):
            paths.append(str(self.folder / f"again_{number}.xml"))
            pathlib.Path(paths[-1]).write_text("<testsuite>" + "".join(cases) + "</testsuite>")
        return self.judge(*first, ledger_text="a/one 3\n", options=["--again", *paths])

    def may_be_flaky(self, *cases):
        path = self.folder / "junit.xml"
        path.write_text("<testsuite>" + "".join(cases) + "</testsuite>")
        return [suite.name for suite in flakes.to_run_again(junit.read(path))]

    def test_a_suite_that_passes_twice_after_its_failure_is_flaky(self):
        bad, good = gtest("a/one", 2, failed=1), gtest("a/one", 3)
        counts, said = self.run_again([bad], [good], [good])
        self.assertEqual(counts, (3, 0, 0))
        for words in ("--- flaky: a/one", "suite.case_a", "./test --in release --only '^a/one$'"):
            self.assertIn(words, said)

    def test_a_suite_that_fails_again_has_failed(self):
        bad, good = gtest("a/one", 2, failed=1), gtest("a/one", 3)
        for further in ([[bad], [good]], [[good], [bad]], [[good]], [[good], []], []):
            counts, said = self.run_again([bad], *further)
            self.assertEqual(counts, (2, 1, 0), further)
            self.assertNotIn("flaky", said)

    def test_the_ledger_judges_what_counts(self):
        bad = gtest("a/one", 2, failed=1)
        self.assertEqual(self.run_again([bad], [gtest("a/one", 2)], [gtest("a/one", 2)])[0], (2, 1, 0))

    def test_others_are_as_they_were(self):
        bad, good = gtest("a/one", 2, failed=1), gtest("a/one", 3)
        self.assertEqual(self.run_again([bad, failed("b/two", "said this")], [good, failed("b/two", "")], [good])[0], (3, 1, 0))

    def test_few_failures_without_a_proof_may_be_flaky(self):
        self.assertEqual(self.may_be_flaky(gtest("a/one", 1), failed("b/two", "5 > 4"), failed("c/three", "", "Timeout")),
                         ["b/two", "c/three"])
        self.assertEqual(self.may_be_flaky(*(failed(name, "5 > 4") for name in "abc")), [])

    def test_a_proof_is_no_flake(self):
        for output in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
                       "a.cpp:1:2: runtime error: signed integer overflow", "SUMMARY: LeakSanitizer: 8 byte(s) leaked",
                       "a.cpp:3: int main(): Assertion `a == b' failed.",
                       "troupe: invariant L2 does not hold: a (b.cpp:4)"):
            self.assertEqual(self.may_be_flaky(failed("a/one", output)), [], output)
        for message in ("SEGFAULT", "Subprocess aborted", "ILLEGAL", "BUS_ERROR"):
            self.assertEqual(self.may_be_flaky(failed("a/one", "said this", message)), [], message)


class Repeats(unittest.TestCase):
    def test_a_suite_counts_on_until_it_fails(self):
        passed, failed = junit.Suite("io/timers", passed=3), junit.Suite("io/files", passed=1, failed=1, failure="said")
        others = [junit.Suite("tidy/layers", passed=1), junit.Suite("io/skipped", skips=["needs root"])]
        now = repeats.counted({"io/timers": 19, "io/files": 19, "io/old": 4}, [[passed, failed, *others], [passed]],
                              {"io/timers", "io/files", "io/old", "io/skipped"})
        self.assertEqual(now, {"io/timers": 20, "io/files": 0, "io/old": 4})

    def test_the_file_is_read_as_it_is_written(self):
        numbers = {"io/files": 3, "http/server": 20}
        self.assertEqual(repeats.read(repeats.text_of(numbers, 1)), (numbers, 1))

    def test_a_new_suite_has_passed_before_it_lands(self):
        suites = {"io/files", "io/new"}
        self.assertIn("io/new is not in tests/repeats.txt", repeats.problems({"io/files": 0}, 1, suites)[0])
        self.assertIn("2 suites have not passed", repeats.problems({"io/files": 0, "io/new": 19}, 1, suites)[0])
        self.assertEqual(repeats.problems({"io/files": 0, "io/new": 20}, 1, suites), [])
        self.assertIn("lower the number", repeats.problems({"io/files": 20, "io/new": 20}, 1, suites)[0])
        self.assertIn("delete its line", repeats.problems({"io/files": 20, "io/gone": 20}, 0, {"io/files"})[0])


class Files(unittest.TestCase):
    def test_conditions_are_complete(self):
        for text, words in (("needs x | tool", "is not `CONDITION"), ("needs x | wish | y", "no kind 'wish'"),
                            ("needs x | tool | get it", "apt-get install PACKAGE"),
                            ("needs x | machine | y\nneeds x | machine | z", "listed twice")):
            with self.assertRaisesRegex(ledger.Malformed, words):
                ledger.parse_conditions(text, "skips.txt")

    def test_no_count_is_lowered(self):
        now = ledger.parse("a/one 3\nb/two 2\n  -1 it tested nothing at all\n", "release.txt")
        versions = [("c2", "a/one 3\nb/two 2\n"), ("c1", "a/one 4\nb/two 2\nc/three 1\n"), ("c0", "a/one 5\n"), ("x", "?")]
        said = ledger.lowered_since(now, versions, "release.txt")
        self.assertEqual(len(said), 2)
        self.assertIn("a/one: the count is 3, and was 4 in c1; counts only grow", said[0])
        self.assertIn("c/three: the count is gone, and was 1 in c1", said[1])

    def test_what_is_written_is_read(self):
        text = "a/one 5\n  -2 moved to a/slow, which takes a minute\nb/two 1\n"
        self.assertEqual(ledger.format_ledger(ledger.parse(text, "x"), ""), text)

    def test_skips_in_sources(self):
        found = list(ledger.skips_in_cpp('if (a) GTEST_SKIP();\nGTEST_SKIP()\n    << "needs x: y";\nGTEST_SKIP() << why;'))
        self.assertEqual(found, [(1, ""), (2, "needs x: y"), (4, None)])
        self.assertEqual(list(ledger.skips_in_script('print("a: skipped: needs x")\nskip(f"needs y: {z}")')),
                         [(1, "needs x"), (2, "needs y: {z}")])


unittest.main()
