"""A seed makes the same choices, whatever surrounds the program (docs/protocols/simulation.md).

usage: determinism.py PROGRAM...
Runs simulated tests of these programs once as they are, and once for each difference: other
processors, another date, other addresses, observed, and traced. Compares the hashes of all choices
(TROUPE_CHOICES). Each 40th test, or each one with TROUPE_DEEP=1.
tests/simulation/outside.txt names the tests in which threads or processes of the real world take
part, with the reason.
"""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
TESTS = Path(os.environ["TROUPE_BINARY_DIR"]) / "tests"
ANOTHER_DATE = """
#include <dlfcn.h>
#include <time.h>
extern "C" int clock_gettime(clockid_t which, timespec* to) noexcept {
  static auto* const real = reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(which, to);
  if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) to->tv_sec += 200'000'003;
  return result;
}
extern "C" time_t time(time_t* to) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
"""


def library_of_another_date(folder):
    source, made = folder / "date.cpp", folder / "date.so"
    source.write_text(ANOTHER_DATE)
    subprocess.run([*os.environ["TROUPE_CXX"].split(), "-shared", "-fPIC", str(source), "-o", str(made), "-ldl"], check=True)
    return made


def differences(folder):
    """What is put before the command, and into the environment."""
    processors = sorted(os.sched_getaffinity(0))
    return {
        "other addresses": (["setarch", "-R"], {}),
        "one processor": (["taskset", "-c", str(processors[0])], {"TROUPE_WORKERS": "1"}),
        "another date": ([], {"LD_PRELOAD": str(library_of_another_date(folder))}),
        "traced": ([], {"TROUPE_TRACE": str(folder / "%s.json")}),
        "observed": ([], {"TROUPE_OBSERVE": "1", "XDG_RUNTIME_DIR": str(folder)}),
    }


def tests_of(program):
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, found = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        elif "simulated" in suite + name or "simulation" in program.name:
            found.append(suite + name)
    return found


def outside():
    lines = (HERE / "outside.txt").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    assert all(len(row) == 2 for row in rows), "outside.txt: TEST | reason"
    return tuple(row[0] for row in rows)


def choices_of(program, test, folder, before=(), environment=None):
    """The lines that the test's runtimes wrote; without those that ran nothing."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        added = {key: value.replace("%s", Path(file.name).name) for key, value in (environment or {}).items()}
        subprocess.run([*before, program, f"--gtest_filter={test}"], cwd=folder, stdin=subprocess.DEVNULL, check=False, timeout=300,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **added, "TROUPE_CHOICES": file.name})
        return [line for line in Path(file.name).read_text().splitlines() if line.split()[1] != "0"]


def faults_of(program, test, folder, ways):
    plain = choices_of(program, test, folder)
    for way, (before, environment) in ways.items():
        other = choices_of(program, test, folder, before, environment)
        if other != plain:
            return [f"{program.name} {test}: {way}: {plain[:2]} became {other[:2]}"], bool(plain)
    return [], bool(plain)


def main():
    left_out = outside()
    with tempfile.TemporaryDirectory(prefix="troupe-determinism-") as name:
        folder = Path(name)
        ways = differences(folder)
        work = [(program, test) for suite in sys.argv[1:] for program in [TESTS / suite] for test in tests_of(program)
                if not test.startswith(left_out)][:: 1 if os.environ.get("TROUPE_DEEP") else 40]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
            done = list(pool.map(lambda one: faults_of(*one, folder, ways), work))
    faults = [line for found, _ in done for line in found]
    ran = sum(chose for _, chose in done)
    print("\n".join(faults + [f"{ran} of {len(work)} tests made choices; {len(faults)} differ"]))
    return 1 if faults or ran < len(work) // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
