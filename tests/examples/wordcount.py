"""wordcount against the pipeline that its head promises to agree with: cat | tr | sort | uniq -c.

The tree has what goes wrong in practice: odd names, no final newline, words across the ends of blocks,
binary files, links in circles, a pipe. The same tables must come out on every policy and pool size.
"""

import os
import pathlib
import random
import resource
import shutil
import stat
import subprocess
import sys

WORDCOUNT = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "wordcount"
SOURCES = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"])
TREE = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "wordcount_check"
BLOCK_BYTES = 64 * 1024
SECONDS_MAX = 60
PIPELINE = r"tr -cs A-Za-z '\n' | tr A-Z a-z | { grep . || true; } | sort | uniq -c | sort -k1,1nr -k2"
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_WORKERS": "2", "TROUPE_POLICY": "shared_queue"}, {"TROUPE_POLICY": "simulated"}]


def fail(text):
    print(f"wordcount: {text}")
    sys.exit(1)


def wordcount(*arguments, environment=None, **more):
    return subprocess.run([WORDCOUNT, *map(str, arguments)], capture_output=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(environment or {})}, **more)


def expected_table(files):
    """A word ends with its file, hence the newline after each."""
    text = b"".join(file.read_bytes() + b"\n" for file in files)
    return subprocess.run(["bash", "-c", PIPELINE], input=text, capture_output=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def expected_summary(table, files, skipped):
    counts = [int(line.split()[0]) for line in table.splitlines()]
    size = sum(file.stat().st_size for file in files)
    return (f"{len(files)} files, {sum(counts)} words, {len(counts)} distinct, {size} bytes, "
            f"{skipped} skipped\n").encode()


def check(what, paths, files, skipped=(), status=0):
    """All words of `files` are counted and each path in `skipped` is named, whatever the policy."""
    table = expected_table(files)
    for environment in POLICIES:
        done = wordcount("--top", 0, *paths, environment=environment)
        if done.returncode != status:
            fail(f"{what}, {environment}: ended with {done.returncode}: {done.stderr.decode()}")
        if done.stdout != table + expected_summary(table, files, len(skipped)):
            (TREE.parent / "wordcount_expected").write_bytes(table)
            (TREE.parent / "wordcount_printed").write_bytes(done.stdout)
            fail(f"{what}, {environment}: the tables differ: "
                 f"diff {TREE.parent}/wordcount_expected {TREE.parent}/wordcount_printed")
        named = done.stderr.decode().splitlines()
        if len(named) != len(skipped):
            fail(f"{what}, {environment}: {len(skipped)} files to skip, but it said: {named}")
        for path, why in skipped:
            if not any(f'"{path}"' in line and line.endswith(f": {why}") for line in named):
                fail(f"{what}, {environment}: did not name {path} ({why}) but said: {named}")


def make_tree():
    """Returns the files that count, and those to skip with the reason."""
    words = random.Random(7)
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def word(most):
        return "".join(words.choices(alphabet, k=words.randint(1, most)))

    def text(count):
        return "".join(word(3) + words.choice([" ", "\n", ", ", "-", "1", "\xe4"]) for _ in range(count))

    shutil.rmtree(TREE, ignore_errors=True)
    good = {
        "plain.txt": b"The cat and the dog.\nTHE END\n",
        "no final newline": b"cut short",
        "empty": b"",
        "digits and bytes": b"a1b2c3 x\xff\xfey \xc3\xa4z don't\r\n",
        "new\nline": b"a name of two lines\n",
        "\u00fc\u00f1\u00ee/\u4e2d\u6587.txt": "na\u00efve caf\u00e9".encode(),
        "-dash/--top": b"not an option\n",
        '"quoted"\\name': b"quoted\n",
        "bytes": bytes(range(1, 256)) * 3,
        # Words, and gaps, that lie across the end of a block or end exactly with it.
        "straddles": b"x" * (BLOCK_BYTES - 2) + b"yz" * 2 + b" after",
        "ends with a block": b" " * (BLOCK_BYTES - 3) + b"end",
        "ends two blocks": b" " * (BLOCK_BYTES - 3) + b"one" + b" " * (BLOCK_BYTES - 3) + b"two",
        "one word": b"w" * (3 * BLOCK_BYTES + 1),
        # A zero byte in the second block makes no binary of it.
        "late zero": b"zero " * (BLOCK_BYTES // 5 + 1) + b"\0 after",
        "long.txt": text(300_000).encode("latin-1"),
    }
    good.update({f"many/{i % 10}/{i}.txt": text(40).encode() for i in range(1_000)})
    files = []
    for name, content in good.items():
        path = TREE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(path)

    (TREE / "empty folder").mkdir()
    (TREE / "program.bin").write_bytes(b"words before\0and after")
    (TREE / "zero at the block's end").write_bytes(b"a" * (BLOCK_BYTES - 1) + b"\0")
    (TREE / "dangling").symlink_to("nowhere")
    (TREE / "many" / "loop").symlink_to("..")
    (TREE / "link to plain").symlink_to("plain.txt")
    os.mkfifo(TREE / "pipe")
    skipped = [(TREE / "program.bin", "binary"), (TREE / "zero at the block's end", "binary"),
               (TREE / "dangling", "symbolic link"), (TREE / "many" / "loop", "symbolic link"),
               (TREE / "link to plain", "symbolic link"), (TREE / "pipe", "not a regular file")]
    if os.geteuid() != 0:  # root may read everything
        for name in ("locked", "locked folder"):
            path = TREE / name
            path.mkdir() if "folder" in name else path.write_bytes(b"secret")
            path.chmod(0)
            skipped.append((path, "Permission denied"))
    return files, skipped


def unlock():
    for name in ("locked", "locked folder"):
        if (TREE / name).exists():
            (TREE / name).chmod(stat.S_IRWXU)


def check_usage():
    for arguments in ([], ["--top", "3"], ["--top"], ["--top", "x", "."], ["--top", "-1", "."], ["--what", "."], ["-x"]):
        done = wordcount(*arguments)
        if done.returncode != 2 or not done.stderr.startswith(b"usage:") or done.stdout:
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr} {done.stdout}")
    done = wordcount(".", "--help")
    if done.returncode != 0 or not done.stdout.startswith(b"usage:"):
        fail(f"--help: ended with {done.returncode} and printed {done.stdout}")


def main():
    unlock()
    check_usage()
    files, skipped = make_tree()
    try:
        check("the tree", [TREE], files, skipped)
    finally:
        unlock()

    plain, long = TREE / "plain.txt", TREE / "long.txt"
    check("files by name", [plain, long, plain], [plain, long, plain])
    check("a file that is not there", [plain, TREE / "gone"], [plain],
          [(TREE / "gone", "No such file or directory")], status=1)
    check("only a pipe", [TREE / "pipe"], [], [(TREE / "pipe", "not a regular file")], status=1)
    check("a link on the command line", [TREE / "link to plain", TREE / "many" / "loop" / "-dash"],
          [plain, TREE / "-dash" / "--top"])
    sources = [SOURCES / "include", SOURCES / "src"]
    check("our sources", sources, [p for s in sources for p in s.rglob("*") if p.is_file()])

    # By default, the ten most frequent words.
    table = expected_table([long]).splitlines(keepends=True)
    if wordcount(long).stdout != b"".join(table[:10]) + expected_summary(b"".join(table), [long], 0):
        fail("the default table is not the first ten lines of the whole one")

    # Far more files than descriptors.
    few = wordcount("--top", 0, TREE / "many", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    table = expected_table([f for f in files if TREE / "many" in f.parents])
    if not few.stdout.startswith(table):
        fail(f"with 100 descriptors it ended with {few.returncode} and said {few.stderr.decode()}")

    if b"MB" in wordcount(TREE).stderr or b"MB" not in wordcount("--progress", TREE).stderr:
        fail("progress is shown to a terminal, or when asked for")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([WORDCOUNT, plain], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS_MAX)
    if done.returncode != 1 or b"cannot write" not in done.stderr:
        fail(f"on a full disk it ended with {done.returncode} and said {done.stderr}")
    print("wordcount: agrees with tr, sort and uniq")


main()
