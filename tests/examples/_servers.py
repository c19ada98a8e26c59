"""Servers that tests of examples stand on: each in a folder of its own, and ended with the test."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SECONDS_MAX = 60


def postgres_programs():
    """The folder of PostgreSQL's programs; None where it is not installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def lacks(test, *servers, component=None):
    """Says which of these servers (PostgreSQL, nats-server) is not installed, or that this component was not built."""
    installed = {"PostgreSQL": postgres_programs() is not None, "nats-server": os.path.exists("/usr/sbin/nats-server")}
    wanted = [server for server in servers if not installed[server]]
    if component and not list(pathlib.Path(os.environ["TROUPE_BINARY_DIR"]).glob(f"libtroupe_{component}.a")):
        wanted.append(f"the component {component}")
    for what in wanted:
        print(f"{test}: partly skipped: needs {what}")
    return bool(wanted)


@contextlib.contextmanager
def postgres():
    """A server in a folder, on a Unix socket there; gives the folder."""
    programs = postgres_programs()
    folder = tempfile.mkdtemp()
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=INT"]
        shutil.chown(folder, "postgres", "postgres")
    os.chmod(folder, 0o711)
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*as_user, programs / "initdb", "-D", "data", "-U", "tester", "-A", "trust", "-N", "-E", "UTF8"], check=True, **quiet)
    server = subprocess.Popen([*as_user, programs / "postgres", "-D", "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"], **quiet)
    try:
        until = time.monotonic() + SECONDS_MAX
        while subprocess.run([programs / "pg_isready", "-h", folder], **quiet).returncode != 0:
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError("the server of PostgreSQL does not start")
            time.sleep(0.05)  # sleeps: the server is being started
        yield folder
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(folder)


@contextlib.contextmanager
def nats():
    """A nats-server on a port of its own; gives its address."""
    folder = tempfile.mkdtemp()
    server = subprocess.Popen(["/usr/sbin/nats-server", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS_MAX
        address = None
        while address is None:
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError("nats-server does not start")
            for file in pathlib.Path(folder).glob("*.ports"):
                text = file.read_text()
                if "nats://" in text:
                    address = text[text.index("nats://"):].split('"')[0]
            time.sleep(0.05)  # sleeps: the server is being started
        host, port = address.removeprefix("nats://").split(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=SECONDS_MAX):
            pass
        yield address
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)
