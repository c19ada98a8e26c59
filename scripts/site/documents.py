"""The documents of the repository as pages, with the links, code and headings of the site."""

import dataclasses
import html
import posixpath
import re

import markdown_it

import highlight
import markup

COPIED = (".png", ".svg")
# A word of C++ in running text that can be nothing but a name of ours.
NAME = re.compile(r"(?:troupe::)?((?:\w+::)*\w+)(\(\))?")
# A file of the repository.
PATH = re.compile(r"(?:include|src|tests|examples|docs|scripts|cmake|benches)/[\w./-]*\w\.\w+")


@dataclasses.dataclass
class Heading:
    level: int
    anchor: str
    text: str
    html: str
    said: str = ""  # the words below it, for the search


@dataclasses.dataclass
class Document:
    path: str  # in the repository
    page: str  # in the site
    title: str
    html: str
    headings: list
    lead: str  # the words of its first paragraph


def page_of(path):
    """The address of a document in the site."""
    plain = path.removeprefix("docs/").removesuffix(".md")
    folder, name = posixpath.split(plain)
    if name == "README":
        return posixpath.join(folder, "index.html")
    return (plain if folder else plain.lower()) + ".html"


def source_of(path):
    return (
        path.removeprefix("docs/")
        if path.endswith(COPIED) and path.startswith("docs/")
        else f"source/{path}.html"
    )


def slug(text, taken):
    """The anchor of a heading, as GitHub makes it."""
    made = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    number = taken.get(made, 0)
    taken[made] = number + 1
    return f"{made}-{number}" if number else made


class Broken(Exception):
    """A link of a document to a file that does not exist."""


class Renderer:
    """Makes pages of Markdown.

    `sources` collects the files that need a page of their own, `copied` those that are taken over.
    """

    def __init__(self, root, names):
        self.root, self.names = root, names
        self.sources, self.copied, self.documents, self.uses = set(), set(), {}, {}
        self.parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(
            ["table", "strikethrough"]
        )

    def address(self, path):
        """The place in the site of a file of the repository, or None for one that does not exist.

        That the site needs the file is noted.
        """
        if not (self.root / path).is_file():
            return None
        if path.endswith(".md"):
            self.documents.setdefault(path, None)
            return page_of(path)
        if path.startswith("include/troupe/"):
            header = self.names.headers.get(path.removeprefix("include/troupe/"))
            if header and header.entries:
                return header.page
        (self.copied if path.endswith(COPIED) else self.sources).add(path)
        return source_of(path)

    def address_of_source(self, path):
        """The page that shows the text of a file."""
        self.sources.add(path)
        return source_of(path)

    def render(self, path):
        text = (self.root / path).read_text()
        tokens = self.parser.parse(text)
        page = page_of(path)
        made = Document(path, page, path, "", [], "")
        self._prepare(tokens, path, made)
        made.html = "".join(self._html(tokens, at, made) for at in range(len(tokens)))
        self.documents[path] = made
        return made

    def _prepare(self, tokens, path, made):
        """Sets links, anchors and headings, and collects the words of each section."""
        taken = {}
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                inline = tokens[at + 1]
                text = plain_text(inline)
                if token.tag == "h1":
                    made.title = text
                token.attrs["id"] = slug(text, taken)
                made.headings.append(
                    Heading(
                        int(token.tag[1]), token.attrs["id"], text, html.escape(text, quote=False)
                    )
                )
            elif token.type == "inline":
                for child in token.children:
                    self._link(child, path, made.page)
                if made.headings and tokens[at - 1].type != "heading_open":
                    made.headings[-1].said += " " + plain_text(token)
                    if (
                        tokens[at - 1].type == "paragraph_open"
                        and not made.lead
                        and not names_files(plain_text(token))
                    ):
                        made.lead = plain_text(token)

    def _link(self, token, path, page):
        name = {"link_open": "href", "image": "src"}.get(token.type)
        target = token.attrs.get(name, "") if name else ""
        if not target or re.match(r"[a-z]+:", target):
            return
        file, _, anchor = target.partition("#")
        url = self._found(file, path)
        token.attrs[name] = (
            relative(page, url) + (f"#{anchor}" if anchor else "") if file else f"#{anchor}"
        )

    def _found(self, file, path):
        """The address of a file that a document names; none is the document itself."""
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        url = self.address(whole)
        if url is None:
            raise Broken(f"{path}: links to {file}, which does not exist")
        return url

    def _html(self, tokens, at, made):
        token = tokens[at]
        if token.type == "fence":
            return self.fence(token.info, token.content, made)
        if token.type == "inline":
            return self._inline(token, tokens[at - 1].type == "heading_open", made)
        if token.type == "html_block":
            return self._html_block(token.content, made)
        if token.type == "table_open":
            return '<div class="wide"><table>'
        if token.type == "table_close":
            return "</table></div>"
        if token.type == "heading_close":
            anchor = tokens[at - 2].attrs["id"]
            return f"{anchor_link(anchor)}</{token.tag}>\n"
        return self.parser.renderer.render([token], self.parser.options, {})

    def _html_block(self, text, made):
        """Pictures for dark and for light pages; the files that they name come along."""
        if text.startswith("<!--"):
            return ""

        def moved(found):
            return f'{found[1]}="{relative(made.page, self._found(found[2], made.path))}"'

        return re.sub(r'\b(src|srcset)="([^"]+)"', moved, text)

    def _inline(self, token, is_heading, made):
        inside = is_heading
        parts = []
        for child in token.children:
            inside = {"link_open": True, "link_close": is_heading}.get(child.type, inside)
            if child.type == "code_inline":
                shown = markup.code(child.content)
                url = None if inside else self.meaning_of(child.content, made)
                parts.append(markup.link(url, shown) if url else shown)
            else:
                parts.append(self.parser.renderer.renderInline([child], self.parser.options, {}))
        return "".join(parts)

    def meaning_of(self, code, made):
        """The address of what code in a text names: a file of ours, or a public name."""
        if PATH.fullmatch(code):
            url = self.address(code)
            return relative(made.page, url) if url else None
        found = NAME.fullmatch(code)
        if not found or not (
            code.startswith("troupe::") or "_" in code or "::" in code or found.group(2)
        ):
            return None
        entry = self.names.resolve(found.group(1)) or self.names.only_member(found.group(1))
        # A method of an example may have the name of a method of ours.
        is_sure = entry and (entry.made.kind != "function" or self.names.resolve(found.group(1)))
        return self.use(entry, made) if is_sure else None

    def use(self, entry, made):
        """The address of an entry; the page is noted among those that tell of it."""
        self.uses.setdefault(entry.full, {})[made.page] = made
        return relative(made.page, entry.url)

    def fence(self, info, content, made):
        words = info.split()
        language = words[0] if words else ""

        def link(name):
            if name[0] in '<"':
                header = self.names.header_named(name) if "troupe/" in name else None
                return relative(made.page, header.page) if header and header.entries else None
            entry = self.names.resolve(name) if name.startswith("troupe::") else None
            return self.use(entry, made) if entry else None

        kind = "output" if words[1:] == ["output"] else "code"
        return f'<pre class="{kind}"><code>{highlight.code(content, language, link)}</code></pre>\n'


def anchor_link(anchor):
    return markup.link(f"#{anchor}", "#", kind="anchor", aria_label="Link to this place")


def names_files(text):
    """A paragraph that says in which files something lies."""
    return bool(re.match(r"(Files?|Tests?|Code): |[\w./]*(/|\.hpp)", text))


def relative(page, url):
    """An address of the site as one writes it in a page."""
    file, _, anchor = url.partition("#")
    made = posixpath.relpath(file, posixpath.dirname(page) or ".")
    if file == page:
        made = ""
    return (made + (f"#{anchor}" if anchor else "")) or posixpath.basename(page)


def plain_text(inline):
    return "".join(
        child.content
        if child.type in ("text", "code_inline")
        else " "
        if child.type == "softbreak"
        else ""
        for child in inline.children
    )
