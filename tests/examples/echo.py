"""echo sends back what a hundred clients say, by each backend, refuses a port that is taken, and ends by "quit"."""

import os
import pathlib
import socket
import subprocess
import sys

ECHO = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "echo"
SECONDS_MAX = 60
BAD_ARGUMENTS = (["x"], [""], ["65536"], ["-1"], ["80x"], ["0", "0"])


def fail(text):
    print(f"echo: {text}")
    sys.exit(1)


def converse(environment):
    with subprocess.Popen([ECHO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **environment}) as server:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        again = subprocess.run([ECHO, str(port)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        if again.returncode != 1 or "in use" not in again.stderr:
            fail(f"a port that is taken: status {again.returncode}, {again.stderr}")
        clients = [socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) for _ in range(100)]
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number * 1000)
        for number, client in enumerate(clients):
            wanted, got = b"%d" % number * 1000, b""
            while len(got) < len(wanted):
                part = client.recv(65536)
                if not part:
                    fail(f"{environment}: connection {number} ended early")
                got += part
            if got != wanted:
                fail(f"{environment}: connection {number} got something else")
        clients[0].sendall(b"quit")
        said = server.communicate(timeout=SECONDS_MAX)[1]
        if server.returncode != 0 or said:
            fail(f"{environment}: ended with {server.returncode}: {said}")


for by in "epoll", "io_uring":
    for workers in "1", "2":
        converse({"TROUPE_IO": by, "TROUPE_WORKERS": workers})

for arguments in BAD_ARGUMENTS:
    refused = subprocess.run([ECHO, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if refused.returncode != 2 or "usage: echo" not in refused.stderr:
        fail(f"{arguments}: status {refused.returncode}, {refused.stderr}")
