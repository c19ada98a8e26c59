#!/usr/bin/env python3
"""Asks a server by h2load, and says what that cost the server.

load_h2.py SERVER [ARGUMENT...] BENCH WORKERS SIZE starts SERVER ARGUMENT... BENCH FOLDER on CPU 0, and h2load on CPU 1. SIZE: requests in all,
after a first round that is not counted. Before that it asks once and looks at the body. Prints value (requests a second), check (answers 2xx),
cpu_us (the server's, for one request), and bytes (of one body as it is sent).
"""

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

WARM = 20_000
# Of each question: the path, the arguments of h2load, and whether the body is compressed.
SHAPES = {
    "h2_plaintext": ("/plaintext", ("--clients=64", "--max-concurrent-streams=16"), False),
    "gzip_json": ("/document", ("--h1", "--clients=64", "--header=Accept-Encoding: gzip"), True),
}


def document():
    """4 KiB of JSON, as the servers answer it."""
    rows = [{"id": 1009 * i, "name": f"customer {i * 7919 % 1000}", "open": i % 3 == 0, "key": f"{i * 2654435761 % 2**32:08x}"}
            for i in range(58)]
    text = json.dumps({"rows": rows}, separators=(",", ":"))
    return text[:-1] + ',"end":"' + "x" * (4096 - len(text) - 9) + '"}'


def fail(text):
    sys.exit(f"load_h2: {text}")


def cpu_seconds(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        times = file.read().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(port, server, folder):
    while server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    log = f"{folder}/stderr.log"
    fail("the server has ended: " + (open(log, encoding="utf-8").read() if os.path.exists(log) else ""))


def check_body(url, by_http2, is_compressed):
    how = ["--http2-prior-knowledge"] if by_http2 else ["--header", "Accept-Encoding: gzip"]
    body = subprocess.run(["curl", "--silent", "--show-error", "--max-time", "10", *how, url], stdout=subprocess.PIPE, check=True).stdout
    text = gzip.decompress(body).decode() if is_compressed else body.decode()
    if text != (document() if is_compressed else "Hello, World!"):
        fail(f"another body came: {text[:100]}")
    return len(body)


def ask(url, arguments, size):
    """The requests a second, and how many were answered 2xx."""
    command = ["taskset", "-c", "1", "h2load", "--threads=1", f"--requests={size}", *arguments, url]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rate = re.search(r"finished in [\d.]+\w+, ([\d.]+) req/s", done.stdout)
    right = re.search(r"status codes: (\d+) 2xx", done.stdout)
    if done.returncode != 0 or rate is None or right is None:
        fail(done.stdout)
    return float(rate[1]), int(right[1])


def main():
    *server, bench, _, size = sys.argv[1:]
    if bench not in SHAPES:
        fail(f"there is no question '{bench}'")
    path, arguments, is_compressed = SHAPES[bench]
    os.sched_setaffinity(0, range(os.cpu_count()))
    folder = tempfile.mkdtemp(prefix="troupe-load-")
    with open(f"{folder}/document", "w", encoding="ascii") as file:
        file.write(document())
    process = subprocess.Popen(["taskset", "-c", "0", *server, bench, folder], stdout=subprocess.PIPE, text=True)
    try:
        port = process.stdout.readline().strip()
        if not port.isdigit():
            fail(f"the server said '{port}', not its port")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        wait_for(int(port), process, folder)
        url = f"http://127.0.0.1:{port}{path}"
        body_bytes = check_body(url, not is_compressed, is_compressed)
        ask(url, arguments, WARM)
        before = cpu_seconds(process.pid)
        rate, right = ask(url, arguments, int(size))
        cpu_us = (cpu_seconds(process.pid) - before) * 1e6 / int(size)
        print(f"value={rate} check={right} cpu_us={cpu_us:.3f} bytes={body_bytes}")
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
