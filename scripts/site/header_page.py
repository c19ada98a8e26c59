"""The page of a public header: each name with its declaration, its comment and its members."""

import re

import _declarations
import comments
import documents
import highlight
import markup
import names as names_

KINDS = {"class": "class", "enum": "enumeration"}
KINDS |= {kind: kind for kind in ("function", "value", "alias", "concept")}
BRIEF_LETTERS = 100  # of a comment that fits beside its name
BRIEF_SHARE = 0.7


class HeaderPage:
    """The page of one header.

    `writer` writes comments, `uses` says which documents name what, and `chapters` are the pages of
    the guide, in their order.
    """

    def __init__(self, header, source, writer, search, awaited, uses, chapters):
        self.header, self.source, self.writer, self.search = header, source, writer, search
        self.awaited = awaited
        self.uses, self.chapters = uses, chapters
        self.names = writer.names
        self.headings = []  # (level, anchor, text)

    def base(self, url):
        return documents.relative(self.header.page, url)

    def html(self):
        shown, inner = split_entries(self.header.entries)
        parts = []
        if words := about(self.header):
            parts.append(markup.element("p", self.writer.inline(words, "", self.base), kind="lead"))
        parts.append(include(self.header.path, markup.link(self.base(self.source), "source")))
        if len(shown) > 1:
            parts.append(self.contents(shown))
        parts += [self.group(group, 2) for group in shown]
        if inner:
            parts.append(self.without_comments(inner))
        return "".join(parts)

    def contents(self, shown):
        rows = []
        for group in shown:
            name = markup.link(f"#{group[0].anchor}", markup.code(group[0].made.name))
            rows.append([name, summary(self.writer, group[0], self.base)])
        return markup.table(rows, "contents")

    def without_comments(self, inner):
        """What is declared without a comment, or for the library itself: it is there, folded."""
        kept, self.headings = self.headings, []
        groups = [self.group(group, 3, with_members=False) for group in inner]
        self.headings = kept
        title = markup.element("summary", "Also declared here, without a comment of its own")
        return markup.element("details", title, *groups, kind="inner")

    def group(self, group, level, with_members=True):
        """The declarations that share a comment."""
        entry = group[0]
        explained = self.writer.explain(entry.made.comment, entry.full, self.base)
        self.add_to_search(entry)
        if given := self.given(group):
            explained.facts["Awaited"] = given
        parts = [self.heading(group, level), self.declaration(group)]
        parts += [*explained.body, facts(explained.facts)]
        for example in explained.examples:
            parts.append(markup.element("p", "Example", kind="label"))
            parts.append(markup.block("code", self.writer.example(example, self.base)))
        if level == 2:
            parts.append(self.told_in(group))
        if with_members:
            parts.append(self.members(entry, level))
        return markup.element("section", *parts, kind=f"entry level{level}")

    def heading(self, group, level):
        entry = group[0]
        title = ", ".join(dict.fromkeys(name for one in group for name in one.made.names))
        self.headings.append((level, entry.anchor, title))
        anchors = [anchor for one in group for anchor in (one.anchor, *one.others)]
        parts = [markup.text(title)]
        if level == 2:
            is_struct = re.search(r"^struct\b", entry.made.text, re.M)
            kind = "struct" if is_struct else KINDS[entry.made.kind]
            parts.append(markup.element("span", kind, kind="kind"))
        parts.append(documents.anchor_link(entry.anchor))
        if level == 2:
            place = f"{self.base(self.source)}#L{entry.made.line}"
            parts.append(markup.link(place, "source", kind="source"))
        return other_anchors(anchors) + markup.element(f"h{min(level, 4)}", *parts, id=entry.anchor)

    def declaration(self, group):
        texts = [entry.made.text for entry in group]
        text = ("\n\n" if any("\n" in one for one in texts) else "\n").join(texts)
        return markup.block("declaration", highlight.cpp(text, self.link_of(group[0])))

    def link_of(self, entry):
        """What links the names in a declaration: all but its own."""
        scope = entry.full.rpartition("::")[0]

        def link(name):
            found = self.names.resolve(name, scope)
            return self.base(found.url) if found and found.full != entry.full else None

        return link

    def given(self, group):
        """What `co_await` gives for these functions, where their types do not say so."""
        scope = group[0].full.rpartition("::")[0]
        types = {
            self.awaited.given(one.made, scope) for one in group if one.made.kind == "function"
        }
        shown = []
        for type_of in sorted(types - {None}):
            name = re.match(r"[\w:]+", type_of).group()
            if type_of == "void":
                shown.append("Gives no value.")
            elif (
                name.startswith("std::")
                or name in highlight.TYPES
                or self.names.resolve(name, scope)
            ):
                link = self.link_of(group[0])
                shown.append(f"Gives {markup.element('code', highlight.cpp(type_of, link))}.")
        return " ".join(shown)

    def told_in(self, group):
        """The chapters of the guide that name it."""
        found = {}
        for entry in group:
            for full, pages in self.uses.items():
                if full == entry.full or full.startswith(entry.full + "::"):
                    found |= pages
        links = [
            markup.link(self.base(page), markup.text(found[page].title))
            for page in self.chapters
            if page in found
        ]
        return markup.element("p", "In the guide: ", ", ".join(links), kind="told") if links else ""

    def members(self, entry, level):
        if entry.made.kind == "enum":
            return self.rows(grouped(entry.members))
        parts, values = [], []
        for group in grouped(entry.members):
            if group[0].made.kind in ("value", "alias"):
                values.append(group)
                continue
            parts.append(self.rows(values))
            values = []
            parts.append(self.group(group, level + 1))
        return "".join(parts) + self.rows(values)

    def rows(self, groups):
        """Values, aliases and enumerators, one below the other."""
        rows = "".join(map(self.row, groups))
        brief = sum(is_brief(group[0]) for group in groups) > BRIEF_SHARE * len(groups)
        return (
            markup.element("dl", rows, kind="values brief" if brief else "values") if rows else ""
        )

    def row(self, group):
        explained = self.writer.explain(group[0].made.comment, group[0].full, self.base)
        said = markup.element("dd", *explained.body, facts(explained.facts))
        return markup.element("dt", *map(self.term, group)) + said

    def term(self, entry):
        self.add_to_search(entry)
        text = entry.made.text if entry.made.kind == "alias" else entry.made.text.rstrip(";")
        shown = markup.element("code", highlight.cpp(text, self.link_of(entry)))
        anchors = other_anchors([entry.anchor, *entry.others])
        return markup.element("div", anchors, shown, id=entry.anchor)

    def add_to_search(self, entry):
        words = " ".join(line for line in entry.made.comment if not line.startswith("  "))
        place = f"troupe/{self.header.path}"
        self.search.add(entry.full, entry.url, place, words, symbol=True)


def include(path, beside):
    line = markup.code(f"#include <troupe/{path}>")
    return markup.element("p", line, beside, kind="include")


def about(header):
    """The first paragraph at the top of a header, without the name that it begins with."""
    lines = []
    for line in _declarations.head_comment(header.text):
        if not line.strip() or line.startswith(" "):
            break
        lines.append(line)
    text = re.sub(r"^[\w, ]+: ", "", " ".join(lines))
    return text[:1].upper() + text[1:]


def summary(writer, entry, base):
    """The first sentence of an entry, or the enumerators of one without a comment."""
    if not entry.made.comment and entry.made.kind == "enum":
        return ", ".join(markup.code(member.made.name) for member in entry.members)
    explained = writer.explain(entry.made.comment, entry.full, base)
    return writer.inline(explained.summary, entry.full, base)


def other_anchors(anchors):
    """Places for all but the first, which is that of the heading."""
    return "".join(markup.element("a", id=anchor) for anchor in anchors[1:])


def is_brief(entry):
    letters = sum(map(len, entry.made.comment))
    return letters <= BRIEF_LETTERS and len(entry.made.text) <= BRIEF_LETTERS // 2


def split_entries(entries):
    """Groups with a comment for users, and the other ones."""
    shown, inner = [], []
    for group in grouped(entries):
        (inner if names_.is_internal(group[0].made) else shown).append(group)
    # A name that is explained once is not shown again below, as where it is defined.
    known = {one.full for group in shown for one in group}
    return shown, [group for group in inner if group[0].full not in known]


def grouped(entries):
    """The declarations that share a comment, together."""
    groups = []
    for entry in entries:
        if groups and entry.made.shares and share(groups[-1], entry):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def share(group, entry):
    """Functions, and values below a comment; a comment at the end of a line is for that line."""
    first = group[0].made
    if first.kind != entry.made.kind:
        return False
    return first.kind == "function" or (
        first.kind == "value" and first.comment and not first.is_behind
    )


def facts(found):
    words = [word for word in comments.SHOWN if word in found]
    rows = [markup.element("dt", word) + markup.element("dd", found[word]) for word in words]
    return markup.element("dl", *rows, kind="facts") if rows else ""
