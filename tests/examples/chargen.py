"""chargen sends the right lines to several clients, its memory stays flat however much it sends, and a signal ends it."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

CHARGEN = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "chargen"
SECONDS_MAX = 60
BAD_ARGUMENTS = (["x"], [""], ["65536"], ["-1"], ["80x"], ["0", "0"])
BYTES = 10 * 1000**3 if os.environ.get("TROUPE_DEEP") else 200 * 1000**2
WARM_BYTES = 10 * 1000**2
# AddressSanitizer keeps what was freed.
GROWTH_KIB_MAX = 64 * 1024 if b"__asan_init" in CHARGEN.read_bytes() else 64
WIDTH, FIRST, COUNT = 72, 32, 95


servers = []


def fail(text):
    print(f"chargen: {text}")
    for server in servers:
        server.kill()
    sys.exit(1)


# Of the process' own memory: pages of the program's file come when their code is first run.
def resident_kib(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return fail("no RssAnon")


def receive(client, count):
    buffer, got = bytearray(1 << 20), 0
    while got < count:
        part = client.recv_into(buffer)
        if part == 0:
            fail("the connection ended")
        got += part


def check_text(client):
    wanted = b"".join(bytes(FIRST + (line + column) % COUNT for column in range(WIDTH)) + b"\r\n" for line in range(COUNT)) * 3
    got = b""
    while len(got) < len(wanted):
        got += client.recv(len(wanted) - len(got))
    if got != wanted:
        fail("other text")


def run(environment, count):
    with subprocess.Popen([CHARGEN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **environment}) as server:
        servers.append(server)
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        clients = [socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) for _ in range(3)]
        for client in clients:
            client.sendall(b"what is sent is ignored\n" * 100)
            check_text(client)
        clients.pop().close()  # in the middle of it
        receive(clients[0], WARM_BYTES)
        before = resident_kib(server)
        receive(clients[0], count)
        grown = resident_kib(server) - before
        if grown > GROWTH_KIB_MAX:
            fail(f"{environment}: {grown} KiB more after {count} bytes")
        check = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        check_text(check)
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=SECONDS_MAX)[1]
        if server.returncode != 0 or said:
            fail(f"{environment}: ended with {server.returncode}: {said}")


run({"TROUPE_IO": "epoll"}, BYTES)
run({"TROUPE_IO": "io_uring"}, BYTES)
run({"TROUPE_IO": "epoll", "TROUPE_WORKERS": "1"}, WARM_BYTES)

for arguments in BAD_ARGUMENTS:
    refused = subprocess.run([CHARGEN, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if refused.returncode != 2 or "usage: chargen" not in refused.stderr:
        fail(f"{arguments}: status {refused.returncode}, {refused.stderr}")
