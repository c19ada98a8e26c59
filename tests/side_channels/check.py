"""Every side channel of a program, broken in every way: the program does its work, reports the failure once, and tries again.

docs/protocols/side_channels.md is the rule. The table below has a row for each way to break a channel. What opens a channel is found in
the sources: an environment variable, an option, or a descriptor that is in no list here fails the test."""

import concurrent.futures
import contextlib
import http.server
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = pathlib.Path(sys.argv[1])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 60
IS_ROOT = os.geteuid() == 0
NOBODY = 65534

# ---- what opens side channels ----

# Each variable that the library reads, and the channel that it opens; None: it is no side channel.
VARIABLES = {
    "NOTIFY_SOCKET": "notification",
    "XDG_RUNTIME_DIR": "observation",
    "TROUPE_OBSERVE": "observation",
    "TROUPE_TRACE": "the trace",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "the export by OTLP",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "the export by OTLP",
    "OTEL_SERVICE_NAME": "the export by OTLP",
    "OTEL_TRACES_SAMPLER": "the export by OTLP", "OTEL_TRACES_SAMPLER_ARG": "the export by OTLP",
    "OTEL_RESOURCE_ATTRIBUTES": "the export by OTLP",
    "OTEL_EXPORTER_OTLP_HEADERS": "the export by OTLP",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "the export by OTLP",
    "OTEL_METRICS_EXPORTER": "the export of metrics by OTLP",
    "OTEL_METRIC_EXPORT_INTERVAL": "the export of metrics by OTLP",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "the export of metrics by OTLP",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "the export of metrics by OTLP",
    "OTEL_LOGS_EXPORTER": "the export of logs by OTLP",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "the export of logs by OTLP",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "the export of logs by OTLP",
    # Numbers of lines on standard error, which rows "standard error" are about.
    "TROUPE_FAILURE_LINES": None, "TROUPE_WARNING_LINES": None,
    # A table on standard error at a crash.
    "TROUPE_FLIGHT_RECORDER": None,
    # How the program itself runs.
    "TROUPE_FAILURES_KEPT": None, "TROUPE_STOP_ON_FAILURE": None, "TROUPE_WORKERS": None, "TROUPE_SEED": None, "TROUPE_POLICY": None,
    "TROUPE_CHOICES": None, "TROUPE_REPLAY": None, "TROUPE_EXPLORE": None, "TROUPE_IO": None, "LISTEN_FDS": None, "LISTEN_PID": None, "LISTEN_FDNAMES": None, "TROUPE_PREDECESSOR": None, "TMPDIR": None,
}
# The members of the options that may open one.
OPTIONS = {
    ("include/troupe/runtime/options.hpp", "runtime_options"): {
        "observe": "observation", "dump_on_sigquit": "the dump at SIGQUIT",
        # Functions of the program, or limits of lines on standard error.
        "on_error": None, "on_dead_letter": None, "on_warning": None, "failure_lines": None, "warning_lines": None, "warnings": None,
        "workers": None, "policy": None, "seed": None, "blocking_threads": None, "queued_lazies": None, "resource_bytes": None,
        "serial_lazies": None, "steal_lazies": None, "io": None, "turn": None, "failures_kept": None, "failure_bytes": None,
        "stop_on_failure": None, "flight_recorder_bytes": None,
    },
    ("include/troupe/log/log.hpp", "options"): {"as": None, "file": "the log's file", "callback": "the log"},
    ("include/troupe/otlp/options.hpp", "exporter_options"): {
        "url": "the export by OTLP", "tls": "the export by OTLP", "service_name": None, "attributes": None, "fields": None, "rate": None, "parent_based": None,
        "metrics_url": "the export of metrics by OTLP", "metrics_fields": None, "metrics_interval": None,
        "logs_url": "the export of logs by OTLP", "logs_fields": None, "log_lines": None,
        "spans": None, "batch": None, "interval": None, "request_time": None, "attempts": None, "flush_time": None,
    },
}
# The layers whose files look, report and export: each file that makes a descriptor by itself, and its channel.
WATCHING = ("base", "observe", "log", "runtime", "otlp", "io/service", "task/traces")
DESCRIPTORS = {
    "src/io/service/notify.cpp": "notification",
    "src/runtime/observing/observer.cpp": "observation",
    "src/runtime/observing/stacks/stacks.cpp": "observation",  # where the stacks lie; without it only registers are copied
    "src/base/threads/thread_clock.cpp": "observation",  # whether a thread is blocked; no failure is worth a word
    "src/runtime/observing/core_numbers.cpp": "observation",  # the numbers of the process; those that cannot be read are 0
    "src/runtime/exploring/explore.cpp": None,  # the diagram of a find; explore() throws if it cannot be written
    "src/runtime/pool_size.cpp": None,  # the quota of CPUs; without it all count
    "src/observe/trace_session.cpp": "the trace",
    "src/log/writer.cpp": "the log's file",
    "src/runtime/lifetime/quit_signal.cpp": "the dump at SIGQUIT",
}


def sources(*folders, suffixes=(".cpp", ".hpp")):
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in suffixes and not path.name.endswith((".test.cpp", ".model.cpp")):
                yield str(path.relative_to(SOURCE)), path.read_text()


def members_of(text, struct):
    """The data members of a struct: what is declared in it at the first depth of braces."""
    begin = text.index("{", re.search(rf"\bstruct {struct} \{{", text).start())
    depth, body = 0, ""
    for character in text[begin:]:
        depth += (character == "{") - (character == "}")
        if depth == 0:
            break
        if depth == 1:
            body += character
    body = re.sub(r"(?<!:)//[^\n]*", "", body[1:])  # "http://" is no comment
    found = set()
    for statement in body.split(";"):
        statement = statement.split("=")[0].strip()
        if statement.endswith(")") and "<" not in statement.split("(")[0] or not statement or statement.startswith("static"):
            continue
        if name := re.search(r"(\w+)\s*\}?$", statement):
            found.add(name.group(1))
    return found


def check_lists():
    channels = {name for _, text in sources("src") for names in re.findall(r"constinit base::side_channel ([^;]*);", text)
                for name in re.findall(r'\("([^"]*)"\)', names)}
    rows = {row.channel for row in ROWS} - {None}
    check("each channel has rows, and each row a channel", channels == rows, channels ^ rows)
    read = {name for _, text in sources("src") for name in re.findall(r'(?:getenv|read_number|value_of)\(\s*"([A-Z_]+)"', text)}
    check("each variable that is read is in the list", read == set(VARIABLES), read ^ set(VARIABLES))
    for (path, struct), known in OPTIONS.items():
        found = members_of((SOURCE / path).read_text(), struct)
        check(f"each member of {struct} is in the list", found == set(known), found ^ set(known))
    opens = {path for path, text in sources(*(f"src/{layer}" for layer in WATCHING))
             if re.search(r"(?<![\w.:>])::(?:open|openat|socket|mkdir|bind|connect|eventfd|fopen|pipe2?)\(|std::fopen\(|[io]fstream", text)}
    check("each file that makes a descriptor is in the list", opens == set(DESCRIPTORS), opens ^ set(DESCRIPTORS))
    listed = {*VARIABLES.values(), *DESCRIPTORS.values(), *(c for known in OPTIONS.values() for c in known.values())} - {None}
    check("each listed channel exists", listed <= channels, listed - channels)
    page = (SOURCE / "docs/protocols/side_channels.md").read_text()
    for name in channels | {name for name, channel in VARIABLES.items() if channel}:
        check(f"the page names {name}", name in page, page)
    direct = [path for path, text in sources("tools/troupe") if path != "tools/troupe/trust/visible.cpp"
              and re.search(r"fmt::print|std::cout|std::cerr|\bprintf\(|\bputs\(|fputs\(", text)]
    check("the tool prints by trust/visible.hpp alone", not direct, direct)
    return len(channels), len(read), sum(map(len, OPTIONS.values()))


# ---- the table ----

class Row:
    def __init__(self, name, channel, arguments=(), reports=1, breaks=None, repair=None, root=False):
        self.name, self.channel, self.arguments, self.reports = name, channel, arguments, reports
        self.breaks, self.repair, self.root = breaks, repair, root


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def no_collector(_):
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": free_address()}


def malformed_variables(_):
    return {"OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_RESOURCE_ATTRIBUTES": "a=%zz", "OTEL_EXPORTER_OTLP_HEADERS": "no list",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a name=1"}


def silent_collector(stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"}


def collector_at(address, came):
    """A collector that takes all."""
    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            came.set()

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(address.split(":")[2].split("/")[0])), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def collector_comes(run):
    """A collector listens at the port that refused so far."""
    server = collector_at(run.environment["OTEL_EXPORTER_OTLP_ENDPOINT"], run.came)
    check("spans arrive", run.came.wait(SECONDS_MAX), run)
    server.shutdown()


def one_collector(fails, works):
    """Two collectors, one of which is not there: a second of its failures is one report."""
    def breaks(stack):
        address = free_address()
        server = collector_at(address, threading.Event())
        stack.callback(server.shutdown)
        return {f"OTEL_EXPORTER_OTLP_{fails}_ENDPOINT": free_address(), f"OTEL_EXPORTER_OTLP_{works}_ENDPOINT": address,
                "OTEL_METRIC_EXPORT_INTERVAL": "50"}
    return breaks


def fails_on(run):
    time.sleep(1)  # sleeps: requests of both kinds that are sent by turns
    check("the failure lasts", "works again" not in run.errors.read_text(), run)


def other_collector_comes(variable, kind):
    def repair(run):
        fails_on(run)
        server = collector_at(run.environment[f"OTEL_EXPORTER_OTLP_{variable}_ENDPOINT"], run.came)
        check(f"{kind} arrive", run.came.wait(SECONDS_MAX), run)
        wait_until("the end of the failure is reported", lambda: f"the export of {kind} by OTLP works again" in run.errors.read_text())
        server.shutdown()
    return repair


def dead_manager(stack):
    path = stack.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
    return {"NOTIFY_SOCKET": str(path)}


def dead_manager_by_relative_path(stack):
    path = os.path.relpath(dead_manager(stack)["NOTIFY_SOCKET"])
    return {"NOTIFY_SOCKET": path if path.startswith("../") else "./" + path}


def manager_comes(run):
    path = run.environment["NOTIFY_SOCKET"]
    pathlib.Path(path).unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(SECONDS_MAX)
        check("the manager is told", manager.recv(100) == b"READY=1\n", run)


def full_manager(stack):
    path = str(stack.folder / "notify")
    manager = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    manager.bind(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other, contextlib.suppress(BlockingIOError):
        other.setblocking(False)
        while True:
            other.sendto(b"STATUS=full", path)
    return {"NOTIFY_SOCKET": path}


def runtime_folder(make):
    def breaks(stack):
        folder = stack.folder / "run"
        folder.mkdir()
        make(folder / "troupe")
        return {"XDG_RUNTIME_DIR": str(folder)}
    return breaks


def folder_of_nobody(path):
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


def open_folder(path):
    path.mkdir()
    path.chmod(0o777)


def socket_comes(make_good):
    def repair(run):
        folder = pathlib.Path(run.environment["XDG_RUNTIME_DIR"])
        make_good(folder)
        wait_until("the socket is there", (folder / "troupe" / f"{run.process.pid}.sock").exists)
    return repair


def no_folder(path):
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        path.chmod(0o700) if path.is_dir() else path.unlink()


def limited_files(_):
    return {"limit": 8192}


def log_of(make):
    def breaks(stack):
        return {"log": str(make(stack))}
    return breaks


def pipe(stack):
    os.mkfifo(stack.folder / "pipe")
    return stack.folder / "pipe"


def full_pipe(stack):
    """It has a reader that reads nothing."""
    path = pipe(stack)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stack.callback(os.close, reader)
    return path


def full_disk(stack):
    disk = stack.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    stack.callback(subprocess.run, ["umount", disk], check=False)
    return disk / "file.json"


def log_comes(run):
    path = pathlib.Path(run.environment["log"])
    path.parent.mkdir()
    wait_until("the log has lines", lambda: path.exists() and path.stat().st_size > 0)


def trace_to(make):
    def breaks(stack):
        return {"TROUPE_TRACE": str(make(stack))}
    return breaks


def trace_comes(run):
    pathlib.Path(run.environment["TROUPE_TRACE"]).parent.mkdir()
    run.after = lambda: check("the trace was written", pathlib.Path(run.environment["TROUPE_TRACE"]).stat().st_size > 0, run)


def in_place_of_a_file(stack):
    (stack.folder / "x.json").mkdir()
    return stack.folder / "x.json"


def asks_for_dump(run):
    run.process.send_signal(signal.SIGQUIT)


ROWS = [
    Row("no socket", "notification", breaks=lambda stack: {"NOTIFY_SOCKET": str(stack.folder / "none")}),
    Row("a socket that lost its reader", "notification", breaks=dead_manager, repair=manager_comes),
    Row("a relative path", "notification", breaks=dead_manager_by_relative_path, repair=manager_comes),
    Row("a queue that nobody reads", "notification", breaks=full_manager),
    Row("a socket of another kind", "notification", breaks=lambda _: {"NOTIFY_SOCKET": "vsock:2:9999"}),
    Row("a path of 200 bytes", "notification", breaks=lambda _: {"NOTIFY_SOCKET": "/" + "x" * 200}),
    Row("a file in place of a socket", "notification", breaks=lambda _: {"NOTIFY_SOCKET": "/dev/null"}),
    Row("/proc/none", "observation", ["observe"], breaks=lambda _: {"XDG_RUNTIME_DIR": "/proc/none"}),
    Row("a path of 200 bytes", "observation", ["observe"],
        breaks=lambda stack: {"XDG_RUNTIME_DIR": str(pathlib.Path(stack.folder / ("x" * 150)).mkdir() or stack.folder / ("x" * 150))}),
    Row("a folder that is not there yet", "observation", breaks=lambda stack: {"XDG_RUNTIME_DIR": str(stack.folder / "later"), "TROUPE_OBSERVE": "1"},
        repair=socket_comes(lambda folder: folder.mkdir())),
    Row("a file in place of a folder", "observation", ["observe"], breaks=runtime_folder(lambda path: path.write_text("")),
        repair=socket_comes(lambda folder: no_folder(folder / "troupe"))),
    Row("a folder that is open to others", "observation", ["observe"], breaks=runtime_folder(open_folder),
        repair=socket_comes(lambda folder: no_folder(folder / "troupe"))),
    Row("a link in place of a folder", "observation", ["observe"], breaks=runtime_folder(lambda path: path.symlink_to("/tmp"))),
    Row("another user's folder", "observation", ["observe"], breaks=runtime_folder(folder_of_nobody), root=True),
    Row("a folder that is not there yet", "the log's file", breaks=log_of(lambda stack: stack.folder / "later" / "log"), repair=log_comes),
    Row("a folder in place of a file", "the log's file", breaks=log_of(lambda stack: stack.folder)),
    Row("a pipe without a reader", "the log's file", breaks=log_of(pipe)),
    Row("/dev/full", "the log", breaks=log_of(lambda _: "/dev/full")),
    Row("a file at its limit", "the log", breaks=lambda stack: {"log": str(stack.folder / "log"), "limit": 8192}),
    Row("a full disk", "the log", breaks=log_of(full_disk), root=True),
    Row("a pipe that nobody reads", "the log", reports=0, breaks=log_of(full_pipe)),
    Row("a folder that is not there yet", "the trace", breaks=trace_to(lambda stack: stack.folder / "later" / "x.json"), repair=trace_comes),
    Row("a folder in place of a file", "the trace", breaks=trace_to(in_place_of_a_file)),
    Row("a full device", "the trace", breaks=trace_to(lambda stack: (stack.folder / "x.json").symlink_to("/dev/full") or stack.folder / "x.json")),
    Row("a file at its limit", "the trace", breaks=lambda stack: {"TROUPE_TRACE": str(stack.folder / "x.json"), "limit": 8192}),
    Row("a full disk", "the trace", breaks=trace_to(full_disk), root=True),
    Row("a pipe without a reader", "the trace", breaks=trace_to(lambda stack: pipe(stack).rename(stack.folder / "x.json"))),
    Row("a pipe that nobody reads", "the trace", breaks=trace_to(lambda stack: full_pipe(stack).rename(stack.folder / "x.json"))),
    Row("a table that nobody reads", "the trace", reports=0, breaks=lambda _: {"TROUPE_TRACE": "text", "stderr": "full"}),
    Row("no collector", "the export by OTLP", ["export"], breaks=no_collector, repair=collector_comes),
    Row("a collector that does not answer", "the export by OTLP", ["export"], reports=0, breaks=silent_collector),
    Row("no collector of spans beside one of metrics", "the export by OTLP", ["export"],
        breaks=one_collector("TRACES", "METRICS"), repair=fails_on),
    Row("no collector of metrics beside one of spans", "the export of metrics by OTLP", ["export"],
        breaks=one_collector("METRICS", "TRACES"), repair=other_collector_comes("METRICS", "metrics")),
    Row("no collector of logs beside one of spans", "the export of logs by OTLP", ["export", "log=/dev/null"],
        breaks=one_collector("LOGS", "TRACES"), repair=other_collector_comes("LOGS", "logs")),
    Row("variables that are malformed", "the export by OTLP", ["export"], breaks=malformed_variables),
    Row("no URL", "the export by OTLP", ["export"], breaks=lambda _: {"OTEL_EXPORTER_OTLP_ENDPOINT": "no url at all"}),
    Row("standard error that nobody reads", "the dump at SIGQUIT", ["quit"], reports=0, breaks=lambda _: {"stderr": "full"}, repair=asks_for_dump),
    Row("standard error is closed", None, ["observe", "quit", "export"], reports=0,
        breaks=lambda _: {"stderr": "closed", "XDG_RUNTIME_DIR": "/proc/none", "NOTIFY_SOCKET": "/proc/none"}, repair=asks_for_dump),
    Row("standard error is full", None, ["observe", "quit", "export"], reports=0,
        breaks=lambda _: {"stderr": "/dev/full", "XDG_RUNTIME_DIR": "/proc/none", "NOTIFY_SOCKET": "/proc/none"}, repair=asks_for_dump),
]


# ---- how a row is run ----

class Failed(Exception):
    pass


def check(what, holds, seen=""):
    if not holds:
        raise Failed(f"{what}:\n{seen}")


def wait_until(what, holds):
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        check(what, time.monotonic() < deadline)
        time.sleep(0.02)  # sleeps: another process tells nobody what it has done


class Run:
    def __init__(self, row, stack):
        self.row, self.environment, self.came, self.after = row, row.breaks(stack), threading.Event(), None
        self.errors = stack.folder / "errors"
        self.errors.touch()
        arguments = list(row.arguments)
        if log := self.environment.get("log"):
            arguments.append(f"log={log}")
        limit, how = self.environment.get("limit"), self.environment.get("stderr")
        errors = stack.enter_context(open("/dev/full" if how == "/dev/full" else self.errors, "w"))
        if how == "full":
            reader, writer = os.pipe()
            stack.callback(os.close, reader)
            os.set_blocking(writer, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writer, b"x" * 4096)
            os.set_blocking(writer, True)
            errors = stack.enter_context(os.fdopen(writer, "w"))

        def prepare():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            if how == "closed":
                os.close(2)
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        given = {name: value for name, value in self.environment.items() if name not in ("log", "limit", "stderr")}
        self.process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=prepare,
                                        env={**clean, "XDG_RUNTIME_DIR": str(stack.folder), **given})

    def __str__(self):
        return f"{self.environment}\n{self.errors.read_text()}"

    def reports(self):
        return re.findall(r"^troupe: (.*) fails: .*$", self.errors.read_text(), re.M)


def run_row(row):
    if row.root and not IS_ROOT:
        return 1
    with contextlib.ExitStack() as stack:
        stack.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="troupe_side_", ignore_cleanup_errors=True)))
        run = Run(row, stack)
        try:
            check("the program begins", run.process.stdout.readline() == "ready\n", run)
            if row.repair:
                if row.reports:
                    wait_until("the failure is reported", run.reports)
                row.repair(run)
            elif row.channel in ("the log", "the export by OTLP", "the log's file") and row.reports:
                wait_until("the failure is reported", run.reports)
            began = time.monotonic()
            run.process.send_signal(signal.SIGTERM)
            said = run.process.communicate(timeout=SECONDS_MAX)[0]
            check("the work is done", said == "worked 10000\n" and run.process.returncode == 0, f"{said} {run.process.returncode} {run}")
            check("the program ends soon", time.monotonic() - began < SECONDS_MAX / 2, run)
            reports = run.reports()
            check("the failure is reported once", reports == [row.channel] * row.reports, run)
            if run.after:
                run.after()
        finally:
            run.process.kill()
            run.process.wait()
    return 0


def main():
    channels, variables, options = check_lists()
    skipped, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for row, ended in [(row, pool.submit(run_row, row)) for row in ROWS]:
            try:
                skipped += ended.result()
            except Exception as wrong:  # pylint: disable=broad-except
                failed.append(f"{row.channel}, {row.name}: {type(wrong).__name__}: {wrong}")
    print(*failed, sep="\n")
    if skipped:
        print("side_channels: partly skipped: needs root: full disks and folders of other users were left out")
    print(f"side_channels: {len(ROWS)} rows, {channels} channels, {variables} variables and {options} options; {len(failed)} failed")
    sys.exit(bool(failed))


main()
