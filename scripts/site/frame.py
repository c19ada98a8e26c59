"""What is around the text of each page: the bar, the list of pages, the path, and the contents of the page."""

import html
import pathlib
import re
import string

import documents
import reference

TEMPLATE = string.Template((pathlib.Path(__file__).parent / "theme" / "page.html").read_text())
GUIDE = "docs/guide/README.md"
PROJECT = [
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/platforms.md",
    "docs/dependencies.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/README.md",
    "benches/README.md",
]
TABS = (
    ("Guide", "guide/index.html"),
    ("Reference", "reference/index.html"),
    ("Architecture", "architecture.html"),
    ("Protocols", "protocols/index.html"),
    ("Decisions", "decisions/index.html"),
    ("Changes", "changelog.html"),
)
# The lists of these folders are pages of their own.
FOLDERS = {
    "protocols": (
        "Protocols",
        "Why the concurrent parts are right: states, invariants, and the interleavings that would break them.",
    ),
    "decisions": ("Decisions", "What was measured, decided and rejected."),
}
LEAD_LETTERS = 200


class Frame:
    def __init__(self, all_documents, pages):
        self.documents, self.pages = all_documents, pages
        self.by_page = {document.page: document for document in all_documents.values()}
        chapters = re.findall(r"\]\((\w+\.md)\)", (documents_root() / GUIDE).read_text())
        self.chapters = [all_documents[f"docs/guide/{name}"] for name in chapters]
        left_out = [
            path
            for path in all_documents
            if path.startswith("docs/guide/")
            and path != GUIDE
            and path.split("/")[-1] not in chapters
        ]
        if left_out:
            raise documents.Broken(f"{GUIDE} has no line for {', '.join(left_out)}")

    def section_of(self, path):
        folder = path.removeprefix("docs/").split("/")[0]
        return {"guide": "Guide", "protocols": "Protocols", "decisions": "Decisions"}.get(
            folder, "Project"
        )

    def folder(self, name):
        return sorted(
            (
                document
                for path, document in self.documents.items()
                if path.startswith(f"docs/{name}/")
            ),
            key=lambda one: one.title.lower(),
        )

    # Pages.

    def document(self, document):
        page = document.page
        section = self.section_of(document.path)
        above = (
            [("Guide", "guide/index.html")]
            if document in self.chapters
            else [(section, f"{section.lower()}/index.html")]
            if section in ("Protocols", "Decisions")
            else []
        )
        text = document.html
        if document.path == "README.md":
            text = text.replace("</p>", "</p>" + self.cards(page), 1)
        headings = [
            (heading.level, heading.anchor, heading.text)
            for heading in document.headings
            if heading.level > 1
        ]
        return self.page(
            page, document.title, text, headings, above, document.lead, beside=self.beside(document)
        )

    def component(self, folder, text, headings):
        title = reference.components()[folder][0]
        return self.page(
            f"reference/{folder}.html",
            title,
            f"<h1>{title}</h1>{text}",
            headings,
            [("Reference", "reference/index.html")],
            reference.components()[folder][1],
            folder,
        )

    def header(self, header, text, headings):
        folder = reference.folder_of(header)
        above = [
            ("Reference", "reference/index.html"),
            (reference.components()[folder][0], f"reference/{folder}.html"),
        ]
        return self.page(
            header.page,
            header.path,
            f"<h1><code>{header.path}</code></h1>{text}",
            headings,
            above,
            self.pages.about(header),
            folder,
        )

    def index(self, text, headings):
        return self.page(
            "reference/index.html",
            "Reference",
            f"<h1>Reference</h1>{text}",
            headings,
            [],
            "Every public name.",
            "",
        )

    def list(self, name):
        """The page of a folder of documents."""
        page = f"{name}/index.html"
        title, lead = FOLDERS[name]
        rows = "".join(
            f'<tr><td><a href="{documents.relative(page, document.page)}">{html.escape(document.title)}</a></td>'
            f"<td>{html.escape(shortened(document.lead))}</td></tr>"
            for document in self.folder(name)
        )
        text = f'<h1>{title}</h1><p class="lead">{lead}</p><div class="wide"><table class="list"><tbody>{rows}</tbody></table></div>'
        return self.page(page, title, text, [], [], lead)

    def source(self, path, text):
        page = documents.source_of(path)
        lines = text.split("\n")
        numbered = "\n".join(
            f'<i id="L{number}"></i>{line}' for number, line in enumerate(lines, 1)
        )
        above = []
        header = (
            self.pages.names.headers.get(path.removeprefix("include/troupe/"))
            if path.startswith("include/troupe/")
            else None
        )
        if header and header.entries:
            above = [("Reference", header.page)]
        body = f'<h1><code>{path}</code></h1><pre class="lines"><code>{numbered}</code></pre>'
        return self.page(page, path, body, [], above, path, kind="file")

    # Parts.

    def page(self, page, title, text, headings, above, lead, folder=None, beside="", kind="text"):
        root = "../" * page.count("/")
        return TEMPLATE.substitute(
            root=root,
            title="troupe" if title == "troupe" else f"{html.escape(title)} · troupe",
            lead=html.escape(shortened(lead)),
            kind=kind,
            tabs=self.tabs(page),
            side=self.side(page, folder) if kind != "file" else self.short_side(page),
            path=self.path(page, above),
            text=text,
            beside=beside,
            contents=self.contents(headings, kind),
        )

    def tabs(self, page):
        made = []
        for title, target in TABS:
            folder = target.split("/")[0] + "/"
            is_here = page == target or (target.endswith("/index.html") and page.startswith(folder))
            made.append(
                f'<a href="{documents.relative(page, target)}"{" aria-current=true" if is_here else ""}>{title}</a>'
            )
        return "".join(made)

    def path(self, page, above):
        if not above:
            return ""
        links = " › ".join(
            f'<a href="{documents.relative(page, target)}">{html.escape(title)}</a>'
            for title, target in above
        )
        return f'<p class="path">{links} ›</p>\n'

    def contents(self, headings, kind):
        shown, known = [], set()
        for one in headings:
            known = set() if one[0] == 2 else known
            if one[0] <= 3 and one[2] not in known:  # overloads once
                shown.append(one)
                known.add(one[2])
        if kind == "file" or len(shown) < 2:
            return '<div class="contents-of-page"></div>' if kind != "file" else ""
        links = "".join(
            f'<a href="#{anchor}"{" class=inner" if level > 2 else ""}>{html.escape(text)}</a>'
            for level, anchor, text in shown
        )
        return f'<nav class="contents-of-page" aria-label="On this page"><b>On this page</b>{links}</nav>\n'

    def beside(self, document):
        if document not in self.chapters:
            return ""
        at = self.chapters.index(document)
        made = []
        for offset, name, word in ((-1, "previous", "Before"), (1, "next", "Next")):
            if 0 <= at + offset < len(self.chapters):
                other = self.chapters[at + offset]
                made.append(
                    f'<a class="{name}" href="{documents.relative(document.page, other.page)}"><small>{word}</small>{html.escape(other.title)}</a>'
                )
        return f'<nav class="beside" aria-label="Chapters">{"".join(made)}</nav>\n'

    def cards(self, page):
        cards = (
            ("Start", "guide/start.html", "A first program, and your own build."),
            ("Guide", "guide/index.html", "Every part, in the order in which one learns it."),
            ("Reference", "reference/index.html", "Every public name, as its header explains it."),
            (
                "Coming from …",
                "guide/coming_from.html",
                "CAF, Asio, tokio or Go: the same program both ways.",
            ),
        )
        made = "".join(
            f'<a class="card" href="{documents.relative(page, target)}"><b>{title}</b><span>{line}</span></a>'
            for title, target, line in cards
            if target in self.by_page or target.startswith("reference")
        )
        return f'<div class="cards">{made}</div>'

    def short_side(self, page):
        return (
            "<ul>"
            + "".join(
                f'<li><a href="{documents.relative(page, target)}">{title}</a></li>'
                for title, target in TABS
            )
            + "</ul>"
        )

    def side(self, page, folder):
        """The list of pages; the part that has this page is open."""
        parts = [self.part("Guide", [(one.page, one.title) for one in self.chapters], page)]
        parts.append(self.reference_part(page, folder))
        for name, (title, _) in FOLDERS.items():
            parts.append(
                self.part(
                    title,
                    [(one.page, one.title) for one in self.folder(name)],
                    page,
                    f"{name}/index.html",
                )
            )
        project = [self.documents[path] for path in PROJECT]
        parts.append(self.part("Project", [(one.page, one.title) for one in project], page))
        return "".join(parts)

    def part(self, title, links, page, index=None):
        is_open = any(target == page for target, _ in links) or page == (
            index or f"{title.lower()}/index.html"
        )
        is_open = is_open or (title == "Guide" and page == "index.html")
        rows = "".join(
            f"<li>{self.link(page, target, html.escape(text))}</li>" for target, text in links
        )
        return f'<details{" open" if is_open else ""}><summary>{title}</summary><ul>{rows}</ul></details>'

    def link(self, page, target, text):
        return f'<a href="{documents.relative(page, target)}"{" aria-current=page" if target == page else ""}>{text}</a>'

    def reference_part(self, page, folder):
        parts = []
        for heading, table in (("Core", reference.CORE), ("Components", reference.COMPONENTS)):
            rows = []
            for name, (title, _) in table.items():
                inner = ""
                if name == folder:
                    inner = (
                        "<ul>"
                        + "".join(
                            f"<li>{self.link(page, header.page, header.path.split('/', 1)[-1].removesuffix('.hpp'))}</li>"
                            for header in self.pages.headers_of(name)
                        )
                        + "</ul>"
                    )
                rows.append(f"<li>{self.link(page, f'reference/{name}.html', title)}{inner}</li>")
            parts.append(f'<p class="heading">{heading}</p><ul>{"".join(rows)}</ul>')
        is_open = folder is not None
        index = self.link(page, "reference/index.html", "All names")
        return f'<details{" open" if is_open else ""}><summary>Reference</summary><ul><li>{index}</li></ul>{"".join(parts)}</details>'


def shortened(text):
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= LEAD_LETTERS else text[:LEAD_LETTERS].rsplit(" ", 1)[0] + " …"


def documents_root():
    return pathlib.Path(__file__).resolve().parents[2]
