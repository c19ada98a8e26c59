"""The comment of a declaration, in the parts that a reader looks for.

These are what it does, thread, cost, errors, lifetime, limits and examples.
"""

import dataclasses
import html
import re

import highlight
import markup

# A label of the house style, and under which word the reference shows it.
LABELS = {
    "Thread": "Thread",
    "Threads": "Thread",
    "Cost": "Cost",
    "Errors": "Errors",
    "Lifetime": "Lifetime",
    "Limits": "Limits",
    "Memory": "Memory",
    "Order": "Order",
}
SHOWN = ("Awaited", "Thread", "Cost", "Errors", "Lifetime", "Limits", "Memory", "Order")
LABEL = re.compile(r"(?:(?<=^)|(?<=[.;:)`…]\s))(" + "|".join(LABELS) + r"): ")
SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[A-Z`])")
EXAMPLE = re.compile(r"Example( \(declarations\))?:$")
# A label that is all said in so few words says nothing about the sentences behind it.
SHORT_WORDS = 4
# Methods that comments name without their class.
OF_RUNTIME = {"run", "metrics", "errors", "dump", "hold", "post"}
WORD = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|(?P<path>\b(?:docs|tests|src|include|examples|benches)/[\w./-]*\w\.\w+)"
    r"|(?P<file>\b\w+\.(?:hpp|md)\b)"
    r"|(?P<promise>\bP\d{1,2}\b)"
    r"|(?P<address>https?://[^\s)>\]]*\w)"
    r"|(?P<name>(?<![\w.<])(?:(?<=throws )|(?<=Throws )|(?<=throw ))[a-z]\w+(?![\w(:])"
    r"|(?<![\w.])~?[A-Za-z]\w*(?:::~?\w+)+(?:\([^()\s]{0,40}\))?"
    r"|(?<![\w.])[A-Za-z]\w*(?:\([^()\s]{0,30}\))"
    r"|(?<![\w.])[a-z]\w*_\w+)"
)


@dataclasses.dataclass
class Explained:
    body: list  # HTML of each block
    facts: dict  # HTML by the words of SHOWN
    examples: list  # code
    summary: str  # the first sentence, as plain text


class Writer:
    """Writes words of a comment as HTML.

    `names` resolves them; `link(path)` is the address of a file of the repository.
    """

    def __init__(self, names, link, promises):
        self.names, self.link, self.promises = names, link, promises

    def inline(self, text, scope, base):
        """`base` makes an address of the site relative to the page."""
        made, at = [], 0
        for found in WORD.finditer(text):
            made.append(html.escape(text[at : found.start()], quote=False))
            made.append(self.word(found, scope, base))
            at = found.end()
        return "".join(made) + html.escape(text[at:], quote=False)

    def word(self, found, scope, base):
        kind, text = found.lastgroup, found.group()
        shown = html.escape(found.group("code") or text, quote=False)
        if kind == "address":
            return f'<a href="{html.escape(text)}">{shown}</a>'
        if kind == "promise":
            return f'<a href="{base(self.promises)}">{shown}</a>' if self.promises else shown
        if kind == "path":
            target = self.link(text)
            return (
                f'<a href="{base(target)}"><code>{shown}</code></a>'
                if target
                else f"<code>{shown}</code>"
            )
        if kind == "file":
            target = self.file(text)
            return f'<a href="{base(target)}"><code>{shown}</code></a>' if target else shown
        if kind == "code":
            plain = re.match(r"[\w:~]+", found.group("code"))
            entry = plain and len(plain.group()) > 2 and self.names.resolve(plain.group(), scope)
            entry = (
                entry
                if entry
                and entry.full != scope
                and found.group("code") in (plain.group(), plain.group() + "()")
                else None
            )
        else:
            name = text.split("(")[0]
            entry = (
                self.names.resolve(name, scope)
                or self.names.only_member(name)
                or (name in OF_RUNTIME and self.names.table.get(f"runtime::{name}"))
            )
        if entry and entry.full != scope:
            return f'<a href="{base(entry.url)}"><code>{shown}</code></a>'
        return (
            f"<code>{shown}</code>"
            if kind == "code" or "_" in text or "::" in text or "(" in text
            else shown
        )

    def file(self, name):
        if name.endswith(".md"):
            return self.link(f"docs/guide/{name}")
        header = self.names.header_named(name)
        return header.page if header and header.entries else None

    def explain(self, lines, scope, base):
        made = Explained([], {}, [], "")
        for kind, text in blocks(lines):
            if kind == "example":
                made.examples.append("\n".join(text))
            elif kind == "code":
                made.body.append(markup.block("code", self.example("\n".join(text), base)))
            elif kind == "note":
                made.body.append(markup.element("pre", markup.text("\n".join(text)), kind="note"))
            elif kind == "table":
                made.body.append(self.table(text, scope, base))
            else:
                self.add_text(made, " ".join(text), scope, base)
        return made

    def example(self, code, base):
        return highlight.cpp(code, lambda name: self.code_link(name, base))

    def code_link(self, name, base):
        """Links in an example: names that are spelled with `troupe::`, and headers."""
        if name[0] in '<"':
            header = self.names.header_named(name) if "troupe/" in name else None
            return base(header.page) if header and header.entries else None
        entry = self.names.resolve(name) if name.startswith("troupe::") else None
        return base(entry.url) if entry else None

    def add_text(self, made, text, scope, base):
        body, facts = parts_of(text)
        if body:
            made.summary = made.summary or SENTENCE.split(body)[0]
            made.body.append(f"<p>{self.inline(body, scope, base)}</p>")
        for label, words in facts:
            first = words.split(maxsplit=1)[0]
            words = words if re.search(r"[_:(`<]", first) else words[0].upper() + words[1:]
            said = self.inline(words, scope, base)
            made.facts[label] = f"{made.facts[label]} {said}" if label in made.facts else said

    def table(self, lines, scope, base):
        rows = [
            [self.inline(cell.strip(), scope, base) for cell in line.strip().strip("|").split("|")]
            for line in lines
            if not re.match(r"\|[-| :]+\|?$", line.strip())
        ]
        return markup.table(rows[1:], head=rows[0])


def blocks(lines):
    """(kind, lines) of each block of a comment.

    A kind is text, table, note (a list, as it is laid out), code or example.
    """
    found, kind = [], None
    for line in lines:
        if EXAMPLE.match(line.strip()) and not line.startswith("  "):
            kind = "example"
            found.append((kind, []))
        elif not line.strip():
            if kind in ("example", "code") and found[-1][1]:
                found[-1][1].append("")
            else:
                kind = None
        else:
            now = (
                "code"
                if line.startswith("    ")
                else "note"
                if line.startswith("  ")
                else "table"
                if line.startswith("|")
                else "text"
            )
            if now == "code" and kind in ("example", "note"):
                now = kind
            if now != kind:
                found.append((now, []))
                kind = now
            found[-1][1].append(line[4:] if now in ("example", "code") else line)
    trimmed = [(kind, "\n".join(text).rstrip().split("\n")) for kind, text in found]
    return [(kind, text) for kind, text in trimmed if any(text)]


def parts_of(text):
    """What a paragraph says in general, and [(word of SHOWN, its text)]."""
    pieces = LABEL.split(text)
    general, facts = [], []
    add_sentences(pieces[0], None, general, facts)
    for label, words in zip(pieces[1::2], pieces[2::2]):
        add_sentences(words, LABELS[label], general, facts)
    return " ".join(general), facts


def add_sentences(words, label, general, facts):
    for sentence in SENTENCE.split(words.strip()):
        if not sentence:
            continue
        if re.match(r"Throws? ", sentence):
            facts.append(("Errors", sentence))
        elif label is None:
            general.append(sentence)
        else:
            facts.append((label, sentence))
            if label == "Thread" and len(sentence.split()) <= SHORT_WORDS:
                label = None
