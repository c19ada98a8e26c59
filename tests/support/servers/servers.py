"""Servers of other projects for test scripts: each in a folder of its own, ready when a test has it, and ended with the test."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

SECONDS_MAX = 60
NATS = "/usr/sbin/nats-server"


def postgres_programs():
    """The folder of PostgreSQL's programs; None where it is not installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def lacks(test, *servers, component=None):
    """Says which of these servers (PostgreSQL, nats-server) is not installed, or that this component was not built."""
    installed = {"PostgreSQL": postgres_programs() is not None, "nats-server": os.path.exists(NATS)}
    wanted = [server for server in servers if not installed[server]]
    if component and not list(pathlib.Path(os.environ["TROUPE_BINARY_DIR"]).glob(f"libtroupe_{component}.a")):
        wanted.append(f"the component {component}")
    for what in wanted:
        print(f"{test}: partly skipped: needs {what}")
    return bool(wanted)


@contextlib.contextmanager
def _own_folder():
    folder = tempfile.mkdtemp()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _running(name, command, ready, ends_by, **more):
    """What ready() returns, once that is something."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        until = time.monotonic() + SECONDS_MAX
        while not (found := ready()):
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError(f"{name} does not start")
            time.sleep(0.05)  # sleeps: the server is being started
        yield found
    finally:
        server.send_signal(ends_by)
        server.wait()


@contextlib.contextmanager
def postgres():
    """A server in a folder, on a Unix socket there; gives the folder."""
    programs = postgres_programs()
    with _own_folder() as folder:
        as_user = []
        if os.getuid() == 0:  # the server refuses to run as root
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=INT"]
            shutil.chown(folder, "postgres", "postgres")
        os.chmod(folder, 0o711)
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*as_user, programs / "initdb", "-D", "data", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"], check=True, **quiet)
        command = [*as_user, programs / "postgres", "-D", "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with _running("the server of PostgreSQL", command, lambda: sql(folder, "SELECT 1"), signal.SIGINT, cwd=folder):
            yield folder


def sql(folder, text):
    """Whether the server in this folder runs the text."""
    return subprocess.run([postgres_programs() / "psql", "-h", folder, "-U", "tester", "-d", "postgres", "-Atc", text], cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def nats():
    """A nats-server on a port of its own; gives its address."""
    with _own_folder() as folder:
        def address():
            texts = [file.read_text() for file in pathlib.Path(folder).glob("*.ports")]
            return json.loads(texts[0])["nats"][0] if texts and texts[0].endswith("}") else None

        command = [NATS, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder]
        with _running("nats-server", command, address, signal.SIGKILL) as found:
            yield found
