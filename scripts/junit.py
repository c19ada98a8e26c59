"""What ctest wrote of a run, read as suites.

What ctest runs is one test, or a GoogleTest program with one suite of them, whose own counts are taken then.
"""

import dataclasses
import re
import xml.etree.ElementTree


@dataclasses.dataclass
class Suite:
    """What ctest ran under one name."""
    name: str
    passed: int = 0
    failed: int = 0
    skips: list = dataclasses.field(default_factory=list)  # the reasons, '' where none was given
    failure: str | None = None  # the output, if it failed


def count(output, kind):
    """How many tests a GoogleTest program says were KIND, or None when the output is not of such a program."""
    found = re.search(rf"^\[ *{kind} *\] (\d+) tests?\b", output, re.MULTILINE)
    return int(found[1]) if found else None


def failures_in(output):
    """How many tests a GoogleTest program names as failed; one, if none, for it failed all the same."""
    return len(set(re.findall(r"^\[ *FAILED *\] ([^\s,]*[^\s\d,][^\s,]*)", output, re.MULTILINE))) or 1


def skips_in(output):
    """The reasons of the tests that a GoogleTest program skipped, '' where none was given."""
    skipped = count(output, "SKIPPED") or 0
    reasons = [reason.strip() for reason in re.findall(r"^\S+:\d+: Skipped\n(.*)$", output, re.MULTILINE)]
    return (reasons + [""] * skipped)[:skipped]


def skips_of_script(output, whole):
    """The reasons that a script gives in lines `NAME: skipped: REASON`, or `NAME: partly skipped: REASON` where it did
    the rest. One that skipped the WHOLE without a reason gives ''."""
    kind = "skipped" if whole else "partly skipped"
    reasons = re.findall(rf"^(?:[\w ]+: )?{kind}: (.+)$", output, re.MULTILINE)
    return [reason.strip() for reason in reasons] or [""] * whole


def is_cut(output):
    """Whether ctest removed a part of the output, so that what it counts and skips cannot be read from it."""
    return re.search(r"test output was removed since it exceeds the threshold of \d+ bytes", output) is not None


def read(path):
    """What ctest ran, a Suite each. One whose output was cut has failed, since nobody can say what it did."""
    suites = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        suite = Suite(case.get("name"))
        suites.append(suite)
        reason = case.find("skipped")
        output = case.findtext("system-out", "")
        inside = count(output, "PASSED")
        suite.skips = skips_in(output)
        if case.get("status") == "run":
            suite.passed = 1 if inside is None else inside
            suite.skips += skips_of_script(output, whole=False) if inside is None else []
        elif case.get("status") == "disabled" or (
                reason is not None and reason.get("message", "").startswith("SKIP_")):
            suite.skips += skips_of_script(output, whole=True)
        else:
            # Whatever else ctest may say (fail, not run for want of a program) is no success.
            suite.passed = inside or 0
            suite.failed = failures_in(output)
            failure = case.find("failure")
            said = [e.get("message", "") for e in (reason, failure) if e is not None]
            suite.failure = "\n".join([output.rstrip(), *said])
        if suite.failure is None and is_cut(output):
            suite.passed, suite.failed, suite.skips = 0, 1, []
            suite.failure = f"{suite.name} wrote more than ctest keeps (scripts/configurations.sh): let it write less"
    return suites
