"""The house rules that a program can check; each is a test of its own.

Usage: tidy.py CHECK [ROOT]     with CHECK one of those below
       tidy.py list

`built` also needs TROUPE_BINARY_DIR, where the build left compile_commands.json.
"""

import functools
import os
import pathlib
import subprocess
import sys

import accounts
import commands
import layers
import layout
import links
import text
import ways


class Tree:
    """The files of a checkout, by their paths from its root."""

    # The checks and their self-test name the very things they forbid.
    EXEMPT = "tests/tidy/"

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()

    def files(self, *folders, suffixes=None):
        """Files under these folders (all of them when none is given) with one of these suffixes."""
        for path in self._all:
            if folders and path.parts[0] not in folders:
                continue
            if suffixes and path.suffix not in suffixes:
                continue
            yield path

    def lines(self, path):
        return (self.root / path).read_text(errors="replace").splitlines()

    @functools.cached_property
    def _all(self):
        # Git knows what is ignored; an unpacked archive has no build folders to skip but ours.
        listed = subprocess.run(["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], capture_output=True, text=True)
        inside = subprocess.run(["git", "-C", str(self.root), "rev-parse", "--show-toplevel"],
                                capture_output=True, text=True).stdout.strip()
        if listed.returncode == 0 and inside and pathlib.Path(inside).resolve() == self.root:
            names = sorted(set(listed.stdout.split("\0")) - {""})
        else:
            names = sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*"))
            names = [n for n in names if not n.startswith(("build/", ".git/"))]
        return [pathlib.Path(n) for n in names
                if not n.startswith(self.EXEMPT) and (self.root / n).is_file()]


def compile_commands():
    return pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "compile_commands.json"


CHECKS = {
    "accounts": accounts.check_accounts,
    "layers": layers.check_layers,
    "umbrella": layers.check_umbrella,
    "examples": layers.check_examples,
    "length": text.check_length,
    "columns": layout.check_columns,
    "functions": layout.check_functions,
    "folders": layout.check_folders,
    "basenames": layout.check_basenames,
    "retired_words": layout.check_retired_words,
    "format": layout.check_format,
    "words": text.check_words,
    "sleeps": text.check_sleeps,
    "orders": text.check_orders,
    "kept_memory": text.check_kept_memory,
    "names": text.check_names,
    "links": links.check_links,
    "front_page": links.check_front_page,
    "ways": ways.check_ways,
    "counted_ways": ways.check_counted_ways,
    "layer_table": ways.check_layer_table,
    "relaxed_orders": ways.check_relaxed_orders,
    "pictures": ways.check_pictures,
    "commands": commands.check_commands,
    "built": lambda tree: links.check_built(tree, compile_commands()),
}


def main():
    if sys.argv[1:] == ["list"]:
        print("\n".join(CHECKS))
        return 0
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    root = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("TROUPE_SOURCE_DIR", ".")
    problems = CHECKS[sys.argv[1]](Tree(root))
    print("\n".join(problems) or "tidy")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
