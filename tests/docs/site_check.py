"""The site is built; each link and anchor resolves, and each public name has an entry with a comment.

Nothing comes from another host.
"""

import html
import os
import pathlib
import posixpath
import re
import sys
import urllib.parse

SOURCE = pathlib.Path(os.environ.get("TROUPE_SOURCE_DIR", ".")).resolve()
SITE = pathlib.Path(os.environ.get("TROUPE_BINARY_DIR", "build/release")).resolve() / "site"
SKIPPED = 77
sys.path[:0] = [str(SOURCE / "scripts" / "site"), str(SOURCE / "tests" / "tidy")]

import api  # noqa: E402
import names as names_  # noqa: E402

TAG = re.compile(r"<([a-zA-Z][\w-]*)((?:\s+[\w:-]+(?:=\"[^\"]*\"|=[^\s>]+)?)*)\s*/?>")
ATTRIBUTE = re.compile(r'([\w:-]+)=(?:"([^"]*)"|([^\s>]+))')
# What a browser fetches by itself.
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
OTHER_HOST = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
PROBLEMS_MAX = 40


class Page:
    def __init__(self, path):
        self.links, self.fetched, self.anchors = [], [], set()
        text = path.read_text()
        for found in TAG.finditer(re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.S)):
            tag = found.group(1).lower()
            for name, quoted, bare in ATTRIBUTE.findall(found.group(2)):
                value = html.unescape(quoted or bare)
                if name == "id":
                    self.anchors.add(value)
                elif name in ("href", "src", "data"):
                    (self.fetched if FETCHED.get(tag) == name else self.links).append(value)


def built(folder):
    try:
        import build
    except ImportError:
        print("site: skipped: needs python3-markdown-it")
        sys.exit(SKIPPED)
    return build.build(folder)


def read_pages():
    return {str(path.relative_to(SITE)): Page(path) for path in sorted(SITE.rglob("*.html"))}


def broken_links(pages):
    for name, page in pages.items():
        for target in page.links + page.fetched:
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = urllib.parse.unquote(target).partition("#")
            whole = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), file)) if file else name
            )
            if whole.startswith("..") or not (SITE / whole).is_file():
                yield f"{name}: links to {target}, which the site has not"
            elif anchor and (whole not in pages or anchor not in pages[whole].anchors):
                yield f"{name}: links to {target}; {whole} has no such place"


def foreign(pages):
    for name, page in pages.items():
        for target in page.fetched:
            if OTHER_HOST.match(target):
                yield f"{name}: fetches {target} from another host"
    for path in [*SITE.rglob("*.css"), *SITE.rglob("*.js")]:
        if path.name != "words.js" and re.search(
            r"url\(|@import|https?://|\bfetch\(|XMLHttpRequest|\bWorker\(", path.read_text()
        ):
            yield f"{path.relative_to(SITE)}: may fetch something, which a page from a file cannot"


def unexplained(pages):
    """Public names without an entry."""
    listed = re.findall(r"^- `([\w/.]+)`: (.*)$", api.PAGE.read_text(), re.MULTILINE)
    if not listed:
        yield f"{api.PAGE} lists no names"
    for header, names in listed:
        page = names_.page_of(header)
        for name in re.findall(r"`([\w:]+)`", names):
            if page not in pages or name.rpartition("::")[2] not in pages[page].anchors:
                yield f"{page}: has no entry for {name}"


def undescribed():
    """Public names of which the reference would show no more than the declaration."""
    for header in names_.Names().headers.values():
        for entry in header.entries:
            if not entry.made.comment and not entry.made.shares:
                yield f"include/troupe/{header.path}: no comment says what {entry.full} is"


def unlisted(pages):
    """Pages to which no other page has a link."""
    linked = {"index.html"}
    for name, page in pages.items():
        for target in page.links:
            file = urllib.parse.unquote(target).partition("#")[0]
            if file and not re.match(r"[a-z]+:", target):
                linked.add(posixpath.normpath(posixpath.join(posixpath.dirname(name), file)))
    for name in sorted(set(pages) - linked):
        yield f"{name}: no page links to it"


def misordered(pages):
    """The side bar lists the chapters in the order of the guide's numbered list."""
    listed = re.findall(
        r"^\d+\. \[[^\]]+\]\((\w+)\.md\)", (SOURCE / "docs/guide/README.md").read_text(), re.M
    )
    for name in (f"guide/{chapter}.html" for chapter in listed):
        shown = dict.fromkeys(
            posixpath.basename(link).removesuffix(".html") for link in pages[name].links
        )
        if [chapter for chapter in shown if chapter in listed] != listed:
            yield f"{name}: the side bar has another order of chapters than docs/guide/README.md"


def main():
    if not built(SITE):
        return 1
    pages = read_pages()
    problems = [
        *broken_links(pages),
        *foreign(pages),
        *unexplained(pages),
        *undescribed(),
        *unlisted(pages),
        *misordered(pages),
    ]
    print("\n".join(problems[:PROBLEMS_MAX]))
    if len(problems) > PROBLEMS_MAX:
        print(f"... and {len(problems) - PROBLEMS_MAX} more")
    if not problems:
        print(
            f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links are good"
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
