"""What is around the text of each page: the bar, the list of pages, the path, and the contents."""

import html
import pathlib
import re
import string

import documents
import header_page
import markup
import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = string.Template((ROOT / "scripts/site/theme/page.html").read_text())
GUIDE = "docs/guide/README.md"
PROJECT = [
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/ways.md",
    "docs/promises.md",
    "docs/figures.md",
    "docs/stability.md",
    "docs/platforms.md",
    "docs/dependencies.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/README.md",
    "benches/README.md",
]
TABS = {
    "Guide": "guide/index.html",
    "Reference": "reference/index.html",
    "Architecture": "architecture.html",
    "Protocols": "protocols/index.html",
    "Decisions": "decisions/index.html",
    "Changes": "changelog.html",
}
CARDS = (
    ("guide/start.html", "Start", "A first program, and your own build."),
    ("guide/index.html", "Guide", "Every part, in learning order."),
    ("reference/index.html", "Reference", "Every public name, as its header explains it."),
    (
        "guide/index.html#coming-from-another-library",
        "Coming from …",
        "CAF, Asio, tokio or Go: one program in both libraries.",
    ),
)
# The list of each of these folders is a page of its own.
FOLDERS = {
    "protocols": (
        "Protocols",
        "Why the concurrent parts are right: states, invariants, and the interleavings that would "
        "break them.",
    ),
    "decisions": ("Decisions", "What was measured, decided and rejected."),
}
LEAD_LETTERS = 200


class Frame:
    def __init__(self, all_documents, pages):
        self.documents, self.reference = all_documents, pages
        # The table in front of the list names chapters by task, in another order.
        in_order = (ROOT / GUIDE).read_text().partition("\n## In order\n")[2]
        chapters = dict.fromkeys(re.findall(r"\]\((\w+\.md)\)", in_order))
        self.chapters = [all_documents[f"docs/guide/{name}"] for name in chapters]
        for path in all_documents:
            name = path.removeprefix("docs/guide/")
            if name != path and path != GUIDE and name not in chapters:
                raise documents.Broken(f"{GUIDE} has no line for {name}")

    def section_of(self, path):
        folder = path.removeprefix("docs/").split("/")[0]
        return "Guide" if folder == "guide" else FOLDERS.get(folder, ("Project",))[0]

    def folder(self, name):
        found = (one for path, one in self.documents.items() if path.startswith(f"docs/{name}/"))
        return sorted(found, key=lambda one: one.title.lower())

    # Pages.

    def document(self, document):
        section = self.section_of(document.path)
        is_within = document in self.chapters or section in ("Protocols", "Decisions")
        above = [(section, f"{section.lower()}/index.html")] if is_within else []
        text = document.html
        if document.path == "README.md":
            cards = [markup.card(*card) for card in CARDS]
            text = text.replace(
                "</p>", "</p>" + markup.element("div", *cards, kind="cards four"), 1
            )
        headings = [(one.level, one.anchor, one.text) for one in document.headings if one.level > 1]
        beside = self.beside(document)
        return self.page(
            document.page, document.title, text, document.lead, headings, above, beside
        )

    def component(self, folder, text, headings):
        title, line = reference.components()[folder]
        above = [("Reference", TABS["Reference"])]
        text = markup.element("h1", markup.text(title)) + text
        page = f"reference/{folder}.html"
        return self.page(page, title, text, line, headings, above, folder=folder)

    def header(self, header, text, headings):
        folder = reference.folder_of(header)
        title = reference.components()[folder][0]
        above = [("Reference", TABS["Reference"]), (title, f"reference/{folder}.html")]
        text = markup.element("h1", markup.code(header.path)) + text
        lead = header_page.about(header)
        return self.page(header.page, header.path, text, lead, headings, above, folder=folder)

    def index(self, text, headings):
        text = markup.element("h1", "Reference") + text
        lead = "Every public name."
        return self.page(TABS["Reference"], "Reference", text, lead, headings, [], folder="")

    def list(self, name):
        """The page of a folder of documents."""
        page = f"{name}/index.html"
        title, lead = FOLDERS[name]
        rows = []
        for document in self.folder(name):
            link = markup.link(documents.relative(page, document.page), markup.text(document.title))
            rows.append([link, markup.text(shortened(document.lead))])
        text = markup.element("h1", title) + markup.element("p", lead, kind="lead")
        return self.page(page, title, text + markup.table(rows, "list"), lead, [], [])

    def source(self, path, text):
        """The page of a file's text, which is HTML already."""
        lines = enumerate(text.split("\n"), 1)
        numbered = "\n".join(f'<i id="L{number}"></i>{line}' for number, line in lines)
        header = self.reference.names.headers.get(path.removeprefix("include/troupe/"))
        above = [("Reference", header.page)] if header and header.entries else []
        text = markup.element("h1", markup.code(path)) + markup.block("lines", numbered)
        return self.page(documents.source_of(path), path, text, path, [], above, kind="file")

    # Parts.

    def page(self, page, title, text, lead, headings, above, beside="", folder=None, kind="text"):
        return TEMPLATE.substitute(
            root="../" * page.count("/"),
            title="troupe" if title == "troupe" else f"{html.escape(title)} · troupe",
            lead=html.escape(shortened(lead)),
            kind=kind,
            tabs=self.tabs(page),
            side=self.side(page, folder)
            if kind != "file"
            else markup.items(self.links(page, TABS)),
            path=self.path(page, above),
            text=text,
            beside=beside,
            contents=contents(headings) if kind != "file" else "",
        )

    def link(self, page, target, title):
        current = "page" if target == page else None
        url = documents.relative(page, target)
        return markup.link(url, markup.text(title), aria_current=current)

    def links(self, page, targets):
        return [self.link(page, target, title) for title, target in targets.items()]

    def tabs(self, page):
        made = []
        for title, target in TABS.items():
            folder = target.removesuffix("index.html")
            is_here = page == target or (folder != target and page.startswith(folder))
            url = documents.relative(page, target)
            made.append(markup.link(url, title, aria_current="true" if is_here else None))
        return "".join(made)

    def path(self, page, above):
        links = [
            markup.link(documents.relative(page, target), markup.text(title)) + " ›"
            for title, target in above
        ]
        return markup.element("p", " ".join(links), kind="path") if links else ""

    def beside(self, document):
        """The chapters before and behind."""
        if document not in self.chapters:
            return ""
        at = self.chapters.index(document)
        made = []
        for place, name, word in ((at - 1, "previous", "Before"), (at + 1, "next", "Next")):
            if 0 <= place < len(self.chapters):
                other = self.chapters[place]
                url = documents.relative(document.page, other.page)
                title = markup.element("small", word) + markup.text(other.title)
                made.append(markup.link(url, title, kind=name))
        return markup.element("nav", *made, kind="beside", aria_label="Chapters")

    # The list of pages.

    def side(self, page, folder):
        """All parts; the one that has this page is open."""
        chapters = {one.title: one.page for one in self.chapters}
        is_start = page in ("index.html", TABS["Guide"])
        parts = [self.part("Guide", chapters, page, is_start), self.reference_part(page, folder)]
        for name, (title, _) in FOLDERS.items():
            inside = {one.title: one.page for one in self.folder(name)}
            parts.append(self.part(title, inside, page, page == f"{name}/index.html"))
        project = {self.documents[path].title: self.documents[path].page for path in PROJECT}
        return "".join(parts) + self.part("Project", project, page)

    def part(self, title, targets, page, is_open=False):
        is_open = is_open or page in targets.values()
        return folded(title, markup.items(self.links(page, targets)), is_open)

    def reference_part(self, page, folder):
        parts = [markup.items([self.link(page, TABS["Reference"], "All names")])]
        for heading, table in (("Core", reference.CORE), ("Components", reference.COMPONENTS)):
            rows = []
            for name, (title, _) in table.items():
                link = self.link(page, f"reference/{name}.html", title)
                rows.append(link + (self.headers(page, name) if name == folder else ""))
            parts += [markup.element("p", heading, kind="heading"), markup.items(rows)]
        return folded("Reference", "".join(parts), folder is not None)

    def headers(self, page, folder):
        targets = {
            header.path.split("/", 1)[-1].removesuffix(".hpp"): header.page
            for header in self.reference.headers_of(folder)
        }
        return markup.items(self.links(page, targets))


def folded(title, inner, is_open):
    summary = markup.element("summary", title)
    return markup.element("details", summary, inner, open="" if is_open else None)


def contents(headings):
    """The list of headings beside the text; overloads have one line."""
    shown, known = [], set()
    for level, anchor, text in headings:
        known = set() if level == 2 else known
        if level <= 3 and text not in known:
            shown.append((level, anchor, text))
            known.add(text)
    if len(shown) < 2:
        return markup.element("div", kind="contents-of-page")
    links = [
        markup.link(f"#{anchor}", markup.text(text), kind="inner" if level > 2 else None)
        for level, anchor, text in shown
    ]
    title = markup.element("b", "On this page")
    return markup.element("nav", title, *links, kind="contents-of-page", aria_label="On this page")


def shortened(text):
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= LEAD_LETTERS else text[:LEAD_LETTERS].rsplit(" ", 1)[0] + " …"
