"""Keeps each CPU busy until its standard input is closed: the load of `./test --beside-load`."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def spin(parent):
    # A load whose starter was killed would never end.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    while os.getppid() == parent:
        for _ in range(10_000_000):
            pass
    os._exit(0)


def main():
    parent = os.getpid()
    spinners = []
    for _ in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            spin(parent)
        spinners.append(child)
    sys.stdin.read()
    for child in spinners:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
