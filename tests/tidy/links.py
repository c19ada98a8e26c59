"""References: what is named exists, and what exists is used."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import compiled_together  # noqa: E402

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Of a picture that differs on dark and on light pages.
PICTURE = re.compile(r'\b(?:src|srcset)="([^"]+)"')
# One screen and a half: a longer front page is not read.
FRONT_PAGE, FRONT_PAGE_LINES_MAX = pathlib.Path("README.md"), 90
CODE = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"^#+ +(.*?) *#*$")
# A path of this repository in running text or in a comment. Patterns (with *, <, {) are not paths.
PATH = re.compile(r"(?<![\w./<{}*$@-])((?:docs|include|src|tests|examples|benches|cmake|scripts)"
                  r"/[\w./-]*\w(?:/|\.(?:md|hpp|h|cpp|py|sh|cmake)))(?![\w*<{])")
TEXT = (".md", ".hpp", ".h", ".cpp", ".c", ".py", ".sh", ".cmake", ".txt")


def check_links(tree):
    problems = []
    for path in tree.files(suffixes=(".md",)):
        for number, line in _prose(tree, path):
            problems += [f"{path}:{number}: links within inline code: `{code}`" for code in CODE.findall(line)
                         if any("/" in target or ".md" in target for target in LINK.findall(code))]
            plain = CODE.sub("", line)
            for target in LINK.findall(plain) + PICTURE.findall(plain):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = (path.parent / name) if name else path
                if not (tree.root / file).exists():
                    problems.append(f"{path}:{number}: links to {target}, which does not exist")
                elif anchor and file.suffix == ".md" and anchor not in _anchors(tree, file):
                    problems.append(f"{path}:{number}: {file} has no heading #{anchor}")
    for path in tree.files(suffixes=TEXT):
        for number, line in enumerate(tree.lines(path), 1):
            for target in PATH.findall(line):
                # A README names the files of its own folder from there, and templates those of a new project.
                places = [tree.root, tree.root / path.parent]
                if path.is_relative_to("tools/templates") or str(path) == "tests/tools/new.py":
                    places += [tree.root / "tools/templates" / kind for kind in ("common", "plain")]
                if not any((place / target).exists() for place in places):
                    problems.append(f"{path}:{number}: names {target}, which does not exist")
    return problems


def check_front_page(tree):
    length = len(tree.lines(FRONT_PAGE))
    return [f"{FRONT_PAGE}: {length} lines, more than {FRONT_PAGE_LINES_MAX}: a part of it belongs into a document of its own"
            ] if length > FRONT_PAGE_LINES_MAX else []


def check_built(tree, compile_commands):
    """Every source file is compiled by this build, and every private header is included somewhere."""
    built = {entry["file"] for entry in json.loads(compile_commands.read_text())}
    built.update(str(tree.root / name) for file in list(built) for name in compiled_together.sources_of(file))
    # These are compiled by their own tests, one at a time.
    apart = ("tests/compile_fail/", "tests/explore/mutations/", "tests/tools/lint/", "tests/package/", "tests/fuzz/requests.cpp", "tests/fuzz/inflations.cpp", "tests/fuzz/values_entry.cpp", "tests/fuzz/frames_entry.cpp", "tests/fuzz/nats/nats_entry.cpp", "tests/fuzz/cluster/cluster_entry.cpp", "tests/fuzz/behind_proxy/proxies_entry.cpp", "tests/fuzz/coding/decodings_entry.cpp", "tests/fuzz/vectors_as_files.cpp")
    problems = [f"{path}: no target builds it"
                for path in tree.files("src", "tests", "examples", suffixes=(".cpp",))
                if not str(path).startswith(apart) and str(tree.root / path) not in built]

    included = set()
    for path in tree.files(suffixes=(".hpp", ".h", ".cpp")):
        included.update(re.findall(r'#\s*include\s*["<]([^">]+)[">]', "\n".join(tree.lines(path))))
    problems += [f"{path}: nothing includes it"
                 for path in tree.files("src", suffixes=(".hpp",))
                 if str(path.relative_to("src")) not in included]
    return problems


def _prose(tree, path):
    """The lines of a markdown file outside fenced code."""
    fenced = False
    for number, line in enumerate(tree.lines(path), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _anchors(tree, path):
    anchors = set()
    for _, line in _prose(tree, path):
        if found := HEADING.match(line):
            plain = re.sub(r"[^\w\- ]", "", found.group(1).lower())
            anchors.add(plain.replace(" ", "-"))
    return anchors
