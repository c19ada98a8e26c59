"""Runs a mutated model and succeeds only if the model found a violation.

Usage: expect_violation.py MODEL MUTATION

A violation is exit status 1 together with a line `iteration: N`, which is what relacy prints above
the failing history; a model checked by other means prints the same line. Any other failure (a crash
at the start, an abort) says nothing about the algorithm and does not count.
"""

import os
import re
import subprocess
import sys


def main():
    done = subprocess.run(sys.argv[1:2], env=dict(os.environ, MUTATION=sys.argv[2]),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    found = re.search(r"^iteration: \d+", done.stdout, re.MULTILINE)
    if done.returncode == 1 and found:
        print(f"the mutation was caught, {found.group()}")
        return 0
    print(done.stdout[-4000:])
    if done.returncode == 0:
        print("the mutated model holds: the model does not test what the mutation weakens")
    else:
        print(f"the mutated model failed with status {done.returncode}, but reported no violation")
    return 1


if __name__ == "__main__":
    sys.exit(main())
