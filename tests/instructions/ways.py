"""Which functions and files of ours one operation visits: counted from runs under callgrind, kept in ways.txt.

Usage: ways.py check|keep PROGRAM BUILD COMPILER [WAY...]. The program is ways.cpp, the folder is that of the build.

A function is visited if one of its instructions, also where it is inlined, runs in at least every second operation: a
long run executes it so many times, or so many times more often than a short one. The headers, and the sources that ways.txt names in its
lines `lines SOURCE`, are compiled with line information; of any other source a function is known by its symbol alone, and what
is inlined into it is not seen. `keep` writes the counts and leaves those lines as they are.
"""

import collections
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import compiled_together  # noqa: E402

SKIPPED = 77
ROOT = pathlib.Path(os.environ.get("TROUPE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
KEPT = ROOT / "tests/instructions/ways.txt"
SECONDS_MAX = 300
AIM = 0.9
# Of the visited functions so many may differ from the kept ones: threads take turns by the clock.
DIFFER_MOST = 0.03
# Of so many runs one must be near: a worker that loses its processor spins, or searches more often.
RUNS_MOST = 3


@dataclass(frozen=True)
class Way:
    name: str
    short: int  # 0: the long run is so long that the start of a program does not count
    long: int
    needs_nats: bool = False


# A node looks at its 512 shards now and then: so many asks that this is no part of them.
WAYS = (
    Way("tell", 0, 20_000),
    Way("ask", 0, 20_000),
    Way("wait", 0, 20_000),
    Way("lazy.get", 0, 20_000),
    Way("http1", 100, 300),
    Way("http2", 100, 300),
    Way("durable_post", 100, 300),
    Way("cluster_ask", 100, 1_500, needs_nats=True),
)


class Failed(Exception):
    pass


# ---- clients ----

def frame(kind, flags, stream, body):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def read_fully(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise Failed("the server has closed the connection")
        data += part
    return data


def ask_http1(port, number, path="/plaintext"):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        for _ in range(number):
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += read_fully(connection, 1)
            length = int(re.search(rb"(?i)content-length: (\d+)", answer).group(1))
            read_fully(connection, length)


def ask_http2(port, number):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(8, 0, 0, b"\x7f\0\0\0"))
        for i in range(number):
            # :method GET, :scheme http, :path /plaintext, :authority a
            connection.sendall(frame(1, 5, 2 * i + 1, b"\x82\x86\x04\x0a/plaintext\x01\x01a"))
            while True:
                head = read_fully(connection, 9)
                read_fully(connection, int.from_bytes(head[:3], "big"))
                if head[3] in (3, 7):
                    raise Failed("the server has refused a stream")
                if head[3] <= 1 and head[4] & 1:
                    break


def nats_server(folder):
    """A server of its own, and its port."""
    ports = os.path.join(folder, "ports")
    os.mkdir(ports)
    server = subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for name in os.listdir(ports):
            if found := re.search(r"nats://127\.0\.0\.1:(\d+)", pathlib.Path(ports, name).read_text()):
                return server, f"nats://127.0.0.1:{found.group(1)}"
        time.sleep(0.05)  # sleeps: until another process has written a file
    server.kill()
    raise Failed("nats-server does not start")


# ---- one run ----

def profile_of(program, way, number, folder):
    """What callgrind writes of a run with so many operations."""
    out = os.path.join(folder, "profile")
    words = [program, way.name, str(number), folder]
    server = None
    if way.needs_nats:
        server, url = nats_server(folder)
        words.append(url)
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--demangle=no", "--compress-pos=no", "--compress-strings=no", "--fair-sched=yes",
               f"--callgrind-out-file={out}", *words]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as run:
            try:
                if way.name.startswith("http"):
                    port = int(run.stdout.readline() or 0)
                    (ask_http1 if way.name == "http1" else ask_http2)(port, number)
                    ask_http1(port, 1, "/stop")
                said = run.communicate(timeout=SECONDS_MAX)[1]
            except BaseException:
                run.kill()
                raise
        if run.returncode != 0:
            raise Failed(f"{way.name} ended with status {run.returncode}:\n{said[-4000:]}")
    finally:
        if server:
            server.send_signal(signal.SIGTERM)
            server.wait()
    return out


def executions(profile, program):
    """How often each instruction of the program ran, and the symbol in which it lies."""
    counts, names = collections.Counter(), {}
    is_own = is_inclusive = False
    name = ""
    with open(profile, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("0x"):
                if is_own and not is_inclusive:
                    address, _, count = line.split()
                    counts[address] += int(count)
                    names[address] = name
                is_inclusive = False
            elif line.startswith("calls="):
                is_inclusive = True
            elif line.startswith("ob="):
                is_own = line[3:].strip() == program
            elif line.startswith("fn="):
                name = line[3:].strip()
    return counts, names


# ---- names ----

def short_name(name):
    """`void troupe::actor::(anonymous namespace)::deliver<true>(cell&) [clone .cold]` is `deliver`; all operators are `operator`."""
    name = name.replace("(anonymous namespace)::", "").split("{lambda")[0]
    kept, depth = [], 0
    for letter in name.split("operator")[0]:
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif depth == 0:
            kept.append(letter)
        if letter == "(" and depth == 1:
            break
    if "operator" in name and depth == 0 and not name.split("operator")[0].endswith("_"):
        return "operator"
    return "".join(kept).strip(": ").split(" ")[-1].split("::")[-1]


def is_declared(file, name):
    return bool(name) and re.search(rf"(?<![\w~]){re.escape(name)}\b", (ROOT / file).read_text()) is not None


def frames_of(program, addresses):
    """The functions of ours at each address, from the inlined one to the outermost: {address: [(file, function)]}."""
    asked = "".join(f"{address}\n" for address in addresses)
    said = subprocess.run(["addr2line", "-e", program, "-a", "-i", "-f", "-C"], input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout
    found, at, lines = {}, [], iter(said.splitlines())
    for line in lines:
        if line.startswith("0x"):
            at = found.setdefault(int(line, 16), [])
            continue
        # The folders before it are those of the build, or replaced by -ffile-prefix-map.
        file = re.search(r"(?:^|/)((?:include/troupe|src)/[\w/]+\.[hc]pp):", next(lines))
        if file and (ROOT / file[1]).is_file():
            at.append((file[1], short_name(line)))
    return found


def plain_names(symbols):
    """The names that people read, of symbols of ours."""
    symbols = sorted(symbols)
    said = subprocess.run(["c++filt"], input="\n".join(symbols), stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {symbol: name for symbol, name in zip(symbols, said) if re.match(r"([\w:<>*& ]+ )?troupe::", name)}


def parts_of(place):
    """The sources of an object: several, where a folder is compiled as one unit."""
    if found := re.search(r"\.dir/(src/.*\.cpp)\.o$", place):
        return [found[1]]
    return [os.path.relpath(name, ROOT) for name in compiled_together.sources_of(place.removesuffix(".o"))]


def is_defined(file, name):
    return re.search(rf"(?<![\w~.>]){re.escape(name)}\([^;{{}}]*\)[^;{{}}]*\{{", (ROOT / file).read_text()) is not None


def sources_of(symbols, build):
    """The sources whose objects in the build folder define these functions."""
    if not symbols:
        return {}
    # By the graph: objects of an earlier configuration may lie beside them.
    graph = pathlib.Path(build, "build.ninja").read_text()
    names = re.findall(r"^build (CMakeFiles/[^/ ]+\.dir/(?:src/\S+\.cpp|Unity/\S+\.cxx)\.o):", graph, re.MULTILINE)
    objects = [path for path in (os.path.join(build, name) for name in names) if os.path.exists(path)]
    said = subprocess.run(["nm", "-A", "--defined-only", *objects], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found = {}
    for line in said.splitlines():
        place, _, rest = line.partition(":")
        symbol = rest.split(" ")[2]
        if symbol in symbols:
            found.setdefault(symbol, parts_of(place))
    return found


def visited(program, build, way):
    """{file: functions} of one operation."""
    program = os.path.realpath(program)
    runs = []
    for number in filter(None, (way.short, way.long)):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(executions(profile_of(program, way, number, folder), program))
    short = runs[0][0] if way.short else {}
    long, symbols = runs[-1]
    least = (way.long - way.short) / 2
    addresses = [address for address, count in long.items() if count - short.get(address, 0) >= least]
    frames = frames_of(program, addresses)
    files, without_lines = {}, set()
    for address in addresses:
        found = frames.get(int(address, 16), [])
        for file, function in found:
            if is_declared(file, function):
                files.setdefault(file, set()).add(function)
        if not found:
            without_lines.add(symbols[address])
    names = plain_names(without_lines)
    for symbol, parts in sources_of(set(names), build).items():
        name = short_name(names[symbol])
        if file := next((part for part in parts if is_defined(part, name)), None):
            files.setdefault(file, set()).add(name)
    return files


# ---- the kept counts ----

WAY = re.compile(r"way (\S+): (\d+) functions in (\d+) files, aim (\d+) in (\d+)")


def read_kept():
    """The compiler, and of each way the aims and {file: functions}."""
    compiler, kept, at = "", {}, {}
    for line in KEPT.read_text().splitlines():
        if line.startswith("compiler "):
            compiler = line.removeprefix("compiler ")
        elif found := WAY.fullmatch(line):
            at = {}
            kept[found[1]] = (int(found[4]), int(found[5])), at
        elif line.startswith("  "):
            file, _, functions = line.strip().partition(": ")
            at[file] = set(functions.split())
    return compiler, kept


def write_kept(compiler, counted):
    """Aims are set with the first count, and stay."""
    _, kept = read_kept()
    lines = [line for line in KEPT.read_text().splitlines() if line.startswith(("#", "lines "))]
    lines.append(f"compiler {compiler}")
    for way in WAYS:
        files = counted.get(way.name) or kept.get(way.name, (None, None))[1]
        if not files:
            continue
        functions = sum(map(len, files.values()))
        aims = kept[way.name][0] if way.name in kept else (int(AIM * functions), int(AIM * len(files)))
        lines.append(f"way {way.name}: {functions} functions in {len(files)} files, aim {aims[0]} in {aims[1]}")
        lines += [f"  {file}: {' '.join(sorted(files[file]))}" for file in sorted(files)]
    KEPT.write_text("\n".join(lines) + "\n")


def differences(before, now):
    for file in sorted({*before, *now}):
        yield from (f"- {file}: {name}" for name in sorted(before.get(file, set()) - now.get(file, set())))
        yield from (f"+ {file}: {name}" for name in sorted(now.get(file, set()) - before.get(file, set())))


def is_near(before, now):
    return len(list(differences(before, now))) <= DIFFER_MOST * sum(map(len, now.values())) and len(now) <= len(before) + 1


def compiler_of(command):
    return subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]


def main():
    what, program, build, compiler, *names = sys.argv[1:]
    for tool in ("valgrind", "addr2line", "nm", "c++filt", "nats-server"):
        if shutil.which(tool) is None:
            print(f"ways: skipped: needs {tool}")
            return SKIPPED
    kept_compiler, kept = read_kept()
    here = compiler_of(compiler)
    if what == "check" and here != kept_compiler:
        print("ways: skipped: needs the compiler of the kept counts")
        return SKIPPED
    counted, far = {}, []
    for way in WAYS:
        if names and way.name not in names or not names and way.name not in kept:
            continue
        before = kept.get(way.name, (None, {}))[1]
        for _ in range(RUNS_MOST if what == "check" else 1):
            files = counted[way.name] = visited(program, build, way)
            if is_near(before, files):
                break
        else:
            far.append(way.name)
        changed = list(differences(before, files))
        print(f"{way.name}: {sum(map(len, files.values()))} functions in {len(files)} files, {len(changed)} differ", *changed,
              sep="\n  ", flush=True)
    if what == "keep":
        write_kept(here, counted)
        return 0
    if far:
        print(f"ways: too far from the kept ones: {', '.join(far)}. Where that is meant, run tests/instructions/ways.py keep with the "
              "same words, and commit ways.txt with the table of docs/ways.md.")
    return 1 if far else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError, subprocess.SubprocessError) as failure:
        sys.exit(f"ways: {failure}")
