#!/usr/bin/env python3
"""Builds the site: every document, and a reference from the headers' comments, as static pages.

Usage: scripts/site/build.py FOLDER

The folder is made anew. `./site` installs what this needs, and calls it.
"""

import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "tidy")]
# Debian has the packages for its own Python; another one may read them.
sys.path.append("/usr/lib/python3/dist-packages")

import awaited  # noqa: E402
import comments  # noqa: E402
import documents  # noqa: E402
import frame  # noqa: E402
import header_page  # noqa: E402
import highlight  # noqa: E402
import names as names_  # noqa: E402
import reference  # noqa: E402
import search as search_  # noqa: E402


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.names = names_.Names()
        reference.check(self.names)
        self.renderer = documents.Renderer(ROOT, self.names)
        self.search = search_.Search()
        self.writer = comments.Writer(self.names, self.renderer.address, "promises.html")
        self.reference = reference.Reference(self.names, self.writer)

    def build(self):
        self.read_documents()
        self.frame = frame.Frame(self.renderer.documents, self.reference)
        for document in self.renderer.documents.values():
            self.search.add_document(document, self.frame.section_of(document.path))
            self.write(document.page, self.frame.document(document))
        for name in frame.FOLDERS:
            self.write(f"{name}/index.html", self.frame.list(name))
        self.write_reference()
        for path in sorted(self.renderer.sources):
            self.write_source(path)
        for path in sorted(self.renderer.copied):
            self.write(documents.source_of(path), (ROOT / path).read_bytes())
        for name in ("style.css", "script.js"):
            self.write(name, (HERE / "theme" / name).read_bytes())
        self.write("words.js", self.search.text())

    def read_documents(self):
        """The documents that the site has by itself, and those that they link to."""
        wanted = ["README.md", *frame.PROJECT] + [
            str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))
        ]
        for path in wanted:
            self.renderer.documents.setdefault(path, None)
        while missing := [path for path, made in self.renderer.documents.items() if made is None]:
            for path in missing:
                self.renderer.render(path)

    def write_reference(self):
        for folder in reference.components():
            made, headings = self.reference.component(folder)
            self.write(f"reference/{folder}.html", self.frame.component(folder, made, headings))
        chapters = [chapter.page for chapter in self.frame.chapters]
        given = awaited.Awaited(self.names.headers.values())
        for header in self.names.headers.values():
            if header.entries:
                source = self.renderer.address_of_source(f"include/troupe/{header.path}")
                page = header_page.HeaderPage(
                    header, source, self.writer, self.search, given, self.renderer.uses, chapters
                )
                made = page.html()
                self.write(header.page, self.frame.header(header, made, page.headings))
        made, headings = self.reference.index()
        self.write("reference/index.html", self.frame.index(made, headings))

    def write_source(self, path):
        page = documents.source_of(path)

        def link(name):
            entry = self.names.resolve(name) if name.startswith("troupe::") else None
            return documents.relative(page, entry.url) if entry else None

        text = (ROOT / path).read_text(errors="replace")
        language = pathlib.Path(path).suffix.removeprefix(".")
        self.write(page, self.frame.source(path, highlight.code(text.rstrip("\n"), language, link)))

    def write(self, page, text):
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def build(folder):
    """Builds the site in the folder; returns whether it could."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "words.js").exists():
        print(f"site: {folder} has other files in it; name a new folder", file=sys.stderr)
        return False
    shutil.rmtree(folder, ignore_errors=True)
    try:
        Site(folder).build()
    except documents.Broken as why:
        print(f"site: {why}", file=sys.stderr)
        return False
    return True


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if build(pathlib.Path(sys.argv[1])) else 1


if __name__ == "__main__":
    sys.exit(main())
