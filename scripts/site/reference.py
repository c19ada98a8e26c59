"""The reference above the pages of headers: its index, and a page for each component."""

import documents
import header_page
import markup

# The folders of include/troupe, in the order of the site: what each is called, and what it gives.
CORE = {
    "actor": ("Actors", "Refs, messages, asks, supervision, and calls that block."),
    "runtime": ("Runtime", "The class runtime, its options, timers, metrics and warnings."),
    "task": ("Tasks", "Coroutines, futures and promises, groups, scopes, events, deadlines."),
    "sync": (
        "Locks and channels",
        "Mutexes, semaphores, conditions, barriers, channels and select. They suspend, and block "
        "no thread.",
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
    "asio": ("Asio", "Operations of Asio awaited, and an executor over the pool."),
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


def components():
    return CORE | COMPONENTS


def folder_of(header):
    return header.path.removesuffix(".hpp").split("/")[0]


def check(names):
    """Refuses a folder of headers that the tables above do not name."""
    for header in names.headers.values():
        if header.entries and folder_of(header) not in components():
            raise documents.Broken(
                f"include/troupe/{header.path}: scripts/site/reference.py has no title for it"
            )


class Reference:
    def __init__(self, names, writer):
        self.names, self.writer = names, writer

    def headers_of(self, folder):
        found = [
            header
            for header in self.names.headers.values()
            if header.entries and folder_of(header) == folder
        ]
        return sorted(found, key=lambda header: (header.path.count("/") > 1, header.path))

    def component(self, folder):
        """(HTML, headings) of the page of a component."""
        page = f"reference/{folder}.html"

        def base(url):
            return documents.relative(page, url)

        _, line = components()[folder]
        has_header = f"{folder}.hpp" in self.names.headers
        library = markup.code(f"troupe::{folder if has_header else 'troupe'}")
        parts = [
            markup.element("p", markup.text(line), kind="lead"),
            header_page.include(
                f"{folder if has_header else 'troupe'}.hpp",
                markup.element("span", "links ", library),
            ),
        ]
        headings = []
        for header in self.headers_of(folder):
            anchor = header.path.removesuffix(".hpp").replace("/", ".")
            headings.append((2, anchor, header.path))
            parts += self.section(header, anchor, base)
        return "".join(parts), headings

    def section(self, header, anchor, base):
        """What a component's page says of a header."""
        title = markup.link(base(header.page), markup.code(header.path))
        rows = []
        for group in header_page.split_entries(header.entries)[0]:
            entry = group[0]
            summary = header_page.summary(self.writer, entry, base)
            rows.append([markup.link(base(entry.url), markup.code(entry.full)), summary])
        return [
            markup.element("h2", title, id=anchor),
            markup.element("p", self.writer.inline(header_page.about(header), "", base)),
            markup.table(rows, "contents"),
        ]

    def index(self):
        page = "reference/index.html"

        def base(url):
            return documents.relative(page, url)

        parts = [
            '<p class="lead">Every public name, as its header explains it. The core comes with '
            "<code>troupe/troupe.hpp</code> and <code>troupe::troupe</code>; each component has a "
            "header and a library of its own.</p>"
        ]
        headings = []
        for title, table in (("Core", CORE), ("Components", COMPONENTS)):
            cards = [
                markup.card(base(f"reference/{folder}.html"), name, line)
                for folder, (name, line) in table.items()
            ]
            headings.append((2, title.lower(), title))
            parts.append(markup.element("h2", title, id=title.lower()))
            parts.append(markup.element("div", *cards, kind="cards"))
        headings.append((2, "all-names", "All names"))
        parts.append(markup.element("h2", "All names", id="all-names"))
        return "".join(parts) + self.all_names(base), headings

    def all_names(self, base):
        letters = {}
        for header in self.names.headers.values():
            for group in header_page.split_entries(header.entries)[0]:
                entry = group[0]
                letters.setdefault(entry.made.name[0].upper(), {}).setdefault(entry.full, entry)
        parts = []
        for letter, found in sorted(letters.items()):
            ordered = sorted(found.items(), key=lambda one: one[1].made.name)
            links = [markup.link(base(entry.url), markup.code(full)) for full, entry in ordered]
            parts.append(
                markup.element(
                    "p", markup.element("b", letter), " ", " ".join(links), kind="letter"
                )
            )
        return "".join(parts)
