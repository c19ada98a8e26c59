"""The reference: a page for each public header that declares something for users, one for each component, and an index."""

import html
import re

import _declarations
import comments
import documents
import highlight
import names as names_

# The folders of include/troupe, in the order of the site: what each is called there, and what it gives.
CORE = {
    "actor": ("Actors", "Refs, messages, asks, supervision, and calls that block."),
    "runtime": ("Runtime", "The class `runtime`, its options, timers, metrics and warnings."),
    "task": ("Tasks", "Coroutines, futures and promises, groups, scopes, events, deadlines."),
    "sync": (
        "Locks and channels",
        "Mutexes, semaphores, conditions, barriers, channels and select: all of them suspend and block no thread.",
    ),
    "streams": ("Streams", "Generators, and pipes of values that come one after the other."),
    "jobs": ("Lazies and forks", "Lazy values, fork-join and parallel algorithms."),
    "context": (
        "Contexts",
        "A heap for each piece of work: snapshots, persisted and promoted values.",
    ),
    "parallel": (
        "Guarded and submitted",
        "Values that several threads share under a lock, and calls with a context each.",
    ),
    "io": ("Input and output", "Streams, sockets, files, pipes, signals and child processes."),
    "protocol": ("Protocol classes", "Connections as callbacks of a plain class."),
    "kit": (
        "Services",
        "Retries, limits, circuit breakers, pools, caches, groups of actors, names and topics.",
    ),
    "log": ("Log", "Lines with fields, and levels."),
    "observe": ("Trace", "Marks and spans of your own in a trace."),
    "base": (
        "Errors and times",
        "The exceptions that the library throws, spans of time, and literals.",
    ),
    "reflect": ("Reflection", "The members of a struct and the names of an enumeration."),
}
COMPONENTS = {
    "http": (
        "HTTP",
        "Server and client of HTTP/1.1 and HTTP/2, WebSockets, and server-sent events.",
    ),
    "tls": ("TLS", "Streams of TLS, over OpenSSL."),
    "dns": ("DNS", "Addresses of hosts, and connections to hosts by name."),
    "json": ("JSON", "Values of structs from and to JSON."),
    "database": (
        "Databases",
        "What the clients of databases share: errors, rows as values, transactions.",
    ),
    "sqlite": ("SQLite", "A SQLite file, on a thread of its own."),
    "postgres": ("PostgreSQL", "Connections, pools, transactions, COPY, and notifications."),
    "durable": ("Durable actors", "Actors whose state and mail survive the program."),
    "durable_postgres": (
        "Durable actors in PostgreSQL",
        "The storage of durable actors in a PostgreSQL database.",
    ),
    "nats": ("NATS", "Publish, subscribe, request, and JetStream."),
    "cluster": ("Cluster", "Actors that are found from every program of a cluster."),
    "cron": ("Cron", "Cron schedules, and calls at their times."),
    "otlp": ("OpenTelemetry", "The exporter of spans."),
    "observe_page": (
        "Observing page",
        "The page that shows a running program, and its numbers for Prometheus.",
    ),
}
KINDS = {
    "class": "class",
    "enum": "enumeration",
    "function": "function",
    "value": "value",
    "alias": "alias",
    "concept": "concept",
}
BRIEF_LETTERS = 100  # of a comment that fits beside its name


def components():
    return CORE | COMPONENTS


def folder_of(header):
    return header.path.split("/")[0]


def title_of(header):
    return header.path.removesuffix(".hpp")


def check(names):
    """A folder of headers that the tables above do not name, as an error."""
    for header in names.headers.values():
        if header.entries and folder_of(header) not in components():
            raise documents.Broken(
                f"include/troupe/{header.path}: scripts/site/reference.py has no title for this folder"
            )


class Pages:
    def __init__(self, names, renderer, search):
        self.names, self.renderer, self.search = names, renderer, search
        self.chapters = []  # the pages of the guide, in their order
        self.writer = comments.Writer(names, renderer.address, "index.html#promises")

    def headers_of(self, folder):
        found = [
            header
            for header in self.names.headers.values()
            if header.entries and folder_of(header) == folder
        ]
        return sorted(found, key=lambda header: (header.path.count("/") > 1, header.path))

    # A page of a header.

    def header(self, header):
        """(HTML, [(level, anchor, text)]) of the page of a header."""

        def base(url):
            return documents.relative(header.page, url)

        source = self.renderer.address_of_source(f"include/troupe/{header.path}")
        about = self.about(header)
        shown, inner = split_entries(header.entries)
        parts = [
            f'<p class="lead">{self.writer.inline(about, "", base)}</p>' if about else "",
            f'<p class="include"><code>#include &lt;troupe/{header.path}&gt;</code>'
            f'<a href="{base(source)}">source</a></p>',
        ]
        headings = []
        if len(shown) > 1:
            parts.append(self.contents(shown, base))
        for group in shown:
            parts.append(self.group(group, header, base, source, headings, 2))
        if inner:
            parts.append(self.library(inner, header, base, source))
        return "".join(parts), headings

    def about(self, header):
        text = " ".join(_head_text(header.text))
        text = re.sub(r"^[\w, ]+: ", "", text)
        return text[:1].upper() + text[1:] if text else ""

    def contents(self, shown, base):
        rows = []
        for group in shown:
            entry = group[0]
            summary = self.summary(entry, base)
            name = html.escape(entry.made.name)
            rows.append(
                f'<tr><td><a href="#{entry.anchor}"><code>{name}</code></a></td><td>{summary}</td></tr>'
            )
        return f'<div class="wide"><table class="contents"><tbody>{"".join(rows)}</tbody></table></div>'

    def summary(self, entry, base):
        explained = self.writer.explain(entry.made.comment, entry.full, base)
        return self.writer.inline(explained.summary, entry.full, base)

    def library(self, inner, header, base, source):
        """What only other parts of the library need: it is in the page, folded."""
        inside = "".join(
            self.group(group, header, base, source, [], 3, with_members=False) for group in inner
        )
        return f'<details class="inner"><summary>Also declared here, without a comment of its own</summary>{inside}</details>'

    def group(self, group, header, base, source, headings, level, with_members=True):
        """The declarations that share a comment."""
        entry = group[0]
        title = ", ".join(dict.fromkeys(name for one in group for name in one.made.names))
        headings.append((level, entry.anchor, title))
        explained = self.writer.explain(entry.made.comment, entry.full, base)
        self.add_to_search(group, header, explained)
        others = "".join(
            f'<a id="{anchor}"></a>'
            for one in group
            for anchor in [one.anchor, *one.others][one is entry :]
        )
        kind = KINDS.get(entry.made.kind, "") if level == 2 else ""
        tag = f"h{min(level, 4)}"
        badge = f'<span class="kind">{kind}</span>' if kind else ""
        place = (
            f'<a class="source" href="{base(source)}#L{entry.made.line}" title="Show the source">source</a>'
            if level == 2
            else ""
        )
        parts = [
            f'<section class="entry level{level}">{others}<{tag} id="{entry.anchor}">{html.escape(title)}{badge}'
            f'<a class="anchor" href="#{entry.anchor}" aria-label="Link to this name">#</a>{place}</{tag}>',
            self.declaration(group, base),
            "".join(explained.body),
            facts(explained.facts),
        ]
        for example in explained.examples:
            parts.append(
                '<p class="label">Example</p><pre class="code"><code>'
                f'{highlight.cpp(example, lambda name: self.writer.code_link(name, base))}</code></pre>'
            )
        if level == 2:
            parts.append(self.told_in(group, base))
        if with_members:
            parts.append(self.members(entry, header, base, source, headings, level))
        return "".join(parts) + "</section>"

    def declaration(self, group, base):
        scope = group[0].full.rpartition("::")[0]

        def link(name):
            entry = self.names.resolve(name, scope)
            return (
                base(entry.url)
                if entry and entry not in group and not entry.made.name == group[0].made.name
                else None
            )

        text = "\n".join(entry.made.text for entry in group)
        return f'<pre class="declaration"><code>{highlight.cpp(text, link)}</code></pre>'

    def told_in(self, group, base):
        """The chapters of the guide that name it."""
        found = {}
        for entry in group:
            for full, pages in self.renderer.uses.items():
                if full == entry.full or full.startswith(entry.full + "::"):
                    found |= {
                        page: document for page, document in pages.items() if page in self.chapters
                    }
        if not found:
            return ""
        links = ", ".join(
            f'<a href="{base(page)}">{html.escape(document.title)}</a>'
            for page, document in sorted(found.items(), key=lambda one: self.chapters.index(one[0]))
        )
        return f'<p class="told">In the guide: {links}</p>'

    def members(self, entry, header, base, source, headings, level):
        if entry.made.kind == "enum":
            return self.rows(entry.members, base, header)
        parts, values = [], []
        for group in grouped(entry.members):
            first = group[0]
            if first.made.kind in ("value", "alias"):
                values += group
                continue
            if values:
                parts.append(self.rows(values, base, header))
                values = []
            parts.append(self.group(group, header, base, source, headings, level + 1))
        return "".join(parts) + (self.rows(values, base, header) if values else "")

    def rows(self, entries, base, header):
        """Values, aliases and enumerators, one below the other."""
        rows, brief = [], 0
        for entry in entries:
            brief += (
                sum(map(len, entry.made.comment)) <= BRIEF_LETTERS
                and len(entry.made.text) <= BRIEF_LETTERS // 2
            )
            explained = self.writer.explain(entry.made.comment, entry.full, base)
            self.add_to_search([entry], header, explained)
            text = entry.made.text.rstrip(";") if entry.made.kind != "alias" else entry.made.text
            scope = entry.full.rpartition("::")[0]

            def link(name, entry=entry, scope=scope):
                found = self.names.resolve(name, scope)
                return base(found.url) if found and found.made.name != entry.made.name else None

            said = "".join(explained.body) + facts(explained.facts)
            others = "".join(f'<a id="{anchor}"></a>' for anchor in entry.others)
            rows.append(
                f'<dt id="{entry.anchor}">{others}<code>{highlight.cpp(text, link)}</code></dt><dd>{said}</dd>'
            )
        kind = "values brief" if brief > len(entries) * 0.7 else "values"
        return f'<dl class="{kind}">{"".join(rows)}</dl>'

    def add_to_search(self, group, header, explained):
        words = " ".join(line for line in group[0].made.comment if not line.startswith("  "))
        self.search.add(group[0].full, group[0].url, f"troupe/{header.path}", words, symbol=True)

    # The pages above.

    def component(self, folder):
        """(HTML, headings) of the page of a component."""
        page = f"reference/{folder}.html"

        def base(url):
            return documents.relative(page, url)

        _, line = components()[folder]
        umbrella = (
            f"troupe/{folder}.hpp" if f"{folder}.hpp" in self.names.headers else "troupe/troupe.hpp"
        )
        linked = (
            f"troupe::{folder}"
            if f"{folder}.hpp" in self.names.headers and folder in COMPONENTS
            else "troupe::troupe"
        )
        parts = [
            f'<p class="lead">{self.writer.inline(line, "", base)}</p><p class="include"><code>#include &lt;{umbrella}&gt;</code>'
            f"<span>links <code>{linked}</code></span></p>"
        ]
        headings = []
        for header in self.headers_of(folder):
            anchor = title_of(header).replace("/", ".")
            headings.append((2, anchor, f"{header.path}"))
            rows = "".join(
                f'<tr><td><a href="{base(group[0].url)}"><code>{html.escape(group[0].full)}</code></a></td>'
                f"<td>{self.summary(group[0], base)}</td></tr>"
                for group in split_entries(header.entries)[0]
            )
            about = self.writer.inline(self.about(header), "", base)
            parts.append(
                f'<h2 id="{anchor}"><a href="{base(header.page)}"><code>{header.path}</code></a></h2><p>{about}</p>'
                f'<div class="wide"><table class="contents"><tbody>{rows}</tbody></table></div>'
            )
        return "".join(parts), headings

    def index(self):
        page = "reference/index.html"

        def base(url):
            return documents.relative(page, url)

        parts = [
            '<p class="lead">Every public name, as its header explains it. The core comes with <code>troupe/troupe.hpp</code> and '
            "<code>troupe::troupe</code>; each component has a header and a library of its own.</p>"
        ]
        headings = []
        for title, table in (("Core", CORE), ("Components", COMPONENTS)):
            headings.append((2, title.lower(), title))
            rows = "".join(
                f'<a class="card" href="{base(f"reference/{folder}.html")}"><b>{name}</b>'
                f"<span>{re.sub('`', '', line)}</span></a>"
                for folder, (name, line) in table.items()
            )
            parts.append(f'<h2 id="{title.lower()}">{title}</h2><div class="cards">{rows}</div>')
        headings.append((2, "all-names", "All names"))
        parts.append('<h2 id="all-names">All names</h2>' + self.all_names(base))
        return "".join(parts), headings

    def all_names(self, base):
        letters = {}
        for header in self.names.headers.values():
            for group in split_entries(header.entries)[0]:
                entry = group[0]
                letters.setdefault(entry.made.name[0].upper(), {}).setdefault(entry.full, entry)
        parts = []
        for letter, found in sorted(letters.items()):
            links = " ".join(
                f'<a href="{base(entry.url)}"><code>{full}</code></a>'
                for full, entry in sorted(found.items(), key=lambda one: one[1].made.name)
            )
            parts.append(f'<p class="letter"><b>{letter}</b> {links}</p>')
        return "".join(parts)


def _head_text(text):
    """The first paragraph at the top of a header."""
    lines = []
    for line in _declarations.head_comment(text):
        if not line.strip() or line.startswith(" "):
            break
        lines.append(line)
    return lines


def split_entries(entries):
    """Groups for users, and groups for the library itself."""
    shown, inner = [], []
    for group in grouped(entries):
        (inner if names_.is_internal(group[0].made) else shown).append(group)
    # A name that is explained once is not shown again below, as where it is defined.
    known = {one.full for group in shown for one in group}
    return shown, [group for group in inner if group[0].full not in known]


def grouped(entries):
    """The declarations that share a comment, and overloads of one name, together."""
    groups = []
    for entry in entries:
        made = entry.made
        last = groups[-1][-1].made if groups else None
        if last and made.shares and made.kind == last.kind == "function":
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def facts(found):
    if not found:
        return ""
    rows = "".join(
        f"<dt>{word}</dt><dd>{found[word]}</dd>" for word in comments.SHOWN if word in found
    )
    return f'<dl class="facts">{rows}</dl>'
