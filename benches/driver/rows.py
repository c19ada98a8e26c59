"""rows: what is asked. To add a row, add an entry to ROWS."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Callable, Mapping


@dataclass(frozen=True)
class Row:
    name: str  # family/question, without the number of workers
    unit: str
    better: str  # "less" or "more"
    program: str  # which of a contestant's programs answers: a key in programs.py
    bench: str  # the program's first argument
    size: int  # its third
    check: Callable[[int], int]  # the check that the program must print for a size
    question: str  # one line, for --help
    workers: tuple[int, ...] = (1, 2)
    value: str = "value"  # the key of the figure in the program's line
    limits: Mapping[str, float] = field(default_factory=dict)  # on other keys of our own line
    only_ours: bool = False


@dataclass(frozen=True)
class Run:
    """One call of a program. Rows that differ only in the key they read share it."""

    program: str
    bench: str
    workers: int
    size: int


@dataclass(frozen=True)
class Case:
    """A row at one number of workers: a line of the table."""

    row: Row
    workers: int

    @property
    def name(self) -> str:
        return f"{self.row.name}@{self.workers}" if len(self.row.workers) > 1 else self.row.name

    @property
    def run(self) -> Run:
        return Run(self.row.program, self.row.bench, self.workers, self.row.size)


def same(size: int) -> int:
    return size


def times(factor: int) -> Callable[[int], int]:
    return lambda size: factor * size


def one(_: int) -> int:
    return 1


def fibonacci(n: int) -> int:
    below, at = 0, 1
    for _ in range(n):
        below, at = at, below + at
    return below


def queens(n: int) -> int:
    return {8: 92, 9: 352, 10: 724, 11: 2_680, 12: 14_200, 13: 73_712, 14: 365_596}[n]


def sum_below(n: int) -> int:
    return n * (n - 1) // 2


def ramp(way: str, question: str) -> Row:
    return Row(f"sched/{way}", "ms", "less", "ramp", way, 5, same, question, workers=(16, 64, 128), limits={"times_ideal": 1.2})


ROWS = (
    Row("actor/ping_pong", "ns/round trip", "less", "actors", "ping_pong", 2_000_000, same,
        "one pair sends a number to and fro"),
    Row("actor/counting", "ns/message", "less", "actors", "counting", 10_000_000, same,
        "one sender, one counter"),
    Row("actor/fork_join_throughput", "ns/message", "less", "actors", "fork_join_throughput", 100_000, times(60),
        "one sender, 60 counters, round robin"),
    Row("actor/fork_join_create", "ns/actor", "less", "actors", "fork_join_create", 1_000_000, same,
        "spawn an actor, which handles one message and dies"),
    Row("actor/thread_ring_100", "ns/hop", "less", "actors", "thread_ring_100", 2_000_003, same,
        "a token goes round a ring of 100"),
    Row("actor/thread_ring_10000", "ns/hop", "less", "actors", "thread_ring_10000", 2_000_003, same,
        "a token goes round a ring of 10,000"),
    Row("actor/big", "ns/ping+pong", "less", "actors", "big", 20_000, times(120),
        "each of 120 actors pings random others"),
    Row("actor/chameneos", "ns/meeting", "less", "actors", "chameneos", 1_000_000, same,
        "100 creatures meet in pairs; ours must be fair to 1.5", limits={"fairness": 1.5}),
    Row("actor/bounded_buffer", "ns/message", "less", "actors", "bounded_buffer", 1_800, times(40),
        "40 senders wait for room in one mailbox of 50; a sender and the receiver work for some "
        "0.5 us a message each", only_ours=True),
    Row("actor/bounded_buffer_shared", "ns/message", "less", "actors", "bounded_buffer_shared", 1_800,
        times(40),
        "actor/bounded_buffer under policy::shared_queue", only_ours=True),
    Row("actor/radix", "ns/key", "less", "actors", "radix", 100_000, same,
        "the main thread feeds keys to a row of 60 actors that sort them by a bit each",
        only_ours=True),
    Row("actor/radix_20k", "ns/key", "less", "actors", "radix", 20_000, same,
        "the same with 20,000 keys", only_ours=True),
    Row("actor/radix_shared", "ns/key", "less", "actors", "radix_shared", 100_000, same,
        "actor/radix under policy::shared_queue", only_ours=True),
    Row("actor/idle_memory", "bytes/actor", "less", "actors", "idle_memory", 5_000_000, same,
        "inactive actors that hold 8 bytes each", workers=(1,)),
    Row("sched/idle_cpu", "ms/s", "less", "actors", "idle_cpu", 10, one,
        "CPU time of a runtime with nothing to do (10 ms/s is 1 % of a core)", workers=(2,)),
    Row("sched/wake_latency_p50", "us", "less", "wake", "wake_latency", 2_000, same,
        "a thread on CPU 1 posts to an idle runtime on CPU 0: median", workers=(1,), value="p50"),
    Row("sched/wake_latency_p99", "us", "less", "wake", "wake_latency", 2_000, same,
        "the same: 99th percentile", workers=(1,), value="p99"),
    Row("sched/scaling", "times", "more", "actors", "scaling", 20_000, times(64),
        "speed-up of 64 busy actors from one worker to two", workers=(2,), only_ours=True),
    ramp("ramp", "as many parts as workers, each of which sleeps for 20 ms (so two processors do): a fork of a span"),
    ramp("ramp_halves", "the same: forks of two, each of which forks"),
    ramp("ramp_for", "the same: parallel_for"),
    ramp("ramp_reduce", "the same: parallel_reduce"),
    ramp("ramp_sort", "the same: parallel_sort; each thread sleeps in the first piece that it does not divide"),
    ramp("ramp_lazies", "the same: lazies, wanted one after the other"),
    ramp("ramp_tasks", "the same: tasks that one task spawns"),
    ramp("ramp_actors", "the same: actors that one actor tells something"),
    Row("coro/ask", "ns/ask", "less", "coro", "ask", 2_000_000, same,
        "an actor asks another one and waits for the answer, one at a time"),
    Row("coro/ask_chain", "ns/link", "less", "coro", "ask_chain", 40_000, same,
        "each actor of a chain makes the next one, asks it, and answers when that has"),
    Row("coro/spawn", "ns/task", "less", "coro", "spawn", 10_000_000, same,
        "spawn tasks that return at once, and join them, 1,000 at a time"),
    Row("coro/await_ready", "ns/await", "less", "coro", "await_ready", 20_000_000, same,
        "await a task that returns at once", workers=(1,)),
    Row("coro/switch", "ns/hand-over", "less", "coro", "switch", 5_000_000, same,
        "two tasks hand over to each other", workers=(1,)),
    Row("coro/memory", "bytes/task", "less", "coro", "memory", 1_000_000, same,
        "tasks that sleep for an hour", workers=(1,)),
    Row("coro/timers", "ns/timer", "less", "coro", "timers", 1_000_000, same,
        "arm timers, then cancel them all", workers=(1,)),
    Row("db/sqlite_query", "ns/query", "less", "sqlite", "sqlite_query", 640_000, same,
        "one row of a SQLite file by its key, 64 in flight", (2,)),
    Row("db/sqlite_insert", "ns/row", "less", "sqlite", "sqlite_insert", 64_000, same,
        "one row into a SQLite file, on the disk when it is answered, 64 in flight", (2,)),
    Row("db/postgres_query", "ns/query", "less", "postgres", "postgres_query", 192_000, same,
        "one row of PostgreSQL by its key, 64 in flight on one connection", (2,)),
    Row("db/postgres_updates", "requests/s", "more", "postgres_web", "postgres_updates", 6_000, same,
        "HTTP requests that read 20 rows of PostgreSQL one by one and change them, over each of 64 connections", (2,)),
    Row("db/postgres_updates_cpu", "us/request", "less", "postgres_web", "postgres_updates", 6_000, same,
        "the same: what a request costs the web server", (2,), value="cpu_us"),
    Row("db/fortunes", "requests/s", "more", "postgres_web", "fortunes", 60_000, same,
        "HTTP requests for a page that is made of 12 rows of PostgreSQL, over each of 64 connections", (2,)),
    Row("db/fortunes_cpu", "us/request", "less", "postgres_web", "fortunes", 60_000, same,
        "the same: what a request costs the web server", (2,), value="cpu_us"),
    Row("durable/turns", "ns/turn", "less", "sqlite", "durable_turns", 400_000, same,
        "one message to each of 10,000 durable actors in SQLite, on the disk when it is answered", (2,)),
    Row("durable/idle_memory", "MB", "less", "sqlite", "durable_idle", 1_000_000, same,
        "memory after 1,000,000 durable actors, of which 10,000 are kept", (2,)),
    Row("nats/request", "ns/request", "less", "nats", "nats_request", 20_000, same,
        "a request over nats-server and its answer, one at a time, on two connections", (2,)),
    Row("nats/publish", "ns/message", "less", "nats", "nats_publish", 1_000_000, same,
        "messages of 32 bytes from one connection over nats-server to another", (2,)),
    Row("cluster/ask", "ns/ask", "less", "cluster", "cluster_ask", 20_000, same,
        "an ask of an actor on another node over nats-server; the others: a request and its answer", (2,)),
    Row("cluster/tell", "ns/message", "less", "cluster", "cluster_tell", 1_000_000, same,
        "messages of 32 bytes to an actor on another node; the others: from one connection to another", (2,)),
    Row("cluster/activate", "ns/actor", "less", "cluster", "cluster_activate", 20_000, same,
        "the first ask of an actor, of which half are on another node", (2,)),
    Row("cluster/local", "ns/ask", "less", "cluster_alone", "cluster_local", 2_000_000, same,
        "an ask of an actor of a cluster that is on the same node", (1, 2)),
    Row("kit/mutex", "ns/lock", "less", "kit", "mutex", 20_000_000, same,
        "one task takes a mutex and gives it back"),
    Row("kit/mutex_64", "ns/lock", "less", "kit", "mutex_64", 2_000_000, same,
        "64 tasks queue for a mutex; its holder lets others run before it gives it back"),
    Row("kit/semaphore", "ns/permit", "less", "kit", "semaphore", 20_000_000, same,
        "one task takes one of 8 permits and gives it back"),
    Row("kit/semaphore_64", "ns/permit", "less", "kit", "semaphore_64", 2_000_000, same,
        "64 tasks queue for 8 permits; a holder lets others run before it gives its own back"),
    Row("kit/channel_1_1", "ns/value", "less", "kit", "channel_1_1", 10_000_000, same,
        "one task sends to another through a channel of 100"),
    Row("kit/channel_4_1", "ns/value", "less", "kit", "channel_4_1", 10_000_000, same,
        "four tasks send to another through a channel of 100"),
    Row("kit/channel_4_4", "ns/value", "less", "kit", "channel_4_4", 10_000_000, same,
        "four tasks send to four others through a channel of 100"),
    Row("kit/rendezvous", "ns/value", "less", "kit", "rendezvous", 5_000_000, same,
        "one task sends to another through a channel that holds nothing"),
    Row("kit/broadcast_1_8", "ns/send", "less", "kit", "broadcast_1_8", 1_000_000, times(8),
        "one task sends to eight receivers, 100 values before it waits for them"),
    Row("kit/select_8", "ns/value", "less", "kit", "select_8", 4_000_000, same,
        "one task selects among eight channels of 100, each with a task that sends"),
    Row("kit/scope", "ns/child", "less", "kit", "scope", 10_000_000, same,
        "scopes of 1,000 children that do nothing"),
    Row("kit/async_generator", "ns/value", "less", "kit", "async_generator", 10_000_000, same,
        "an asynchronous generator has each value ready"),
    Row("task/fib", "ns/call", "less", "tasks", "fib", 34, fibonacci,
        "each call of a naive Fibonacci forks into two"),
    Row("task/fib_lazy", "ns/call", "less", "tasks", "fib_lazy", 30, fibonacci,
        "the same by a lazy for one of the two"),
    Row("task/nqueens", "ms", "less", "tasks", "nqueens", 13, queens,
        "at each node of the search for all ways to place 13 queens those below it may run in parallel"),
    Row("task/nqueens_fork", "ms", "less", "tasks", "nqueens_fork", 13, queens,
        "the same; each node forks, whether or not another thread is idle"),
    Row("task/nqueens_cut", "ms", "less", "tasks", "nqueens_cut", 13, queens,
        "the same with forks in the first three rows only"),
    Row("task/skynet", "ns/leaf", "less", "tasks", "skynet", 1_000_000, sum_below,
        "a tree with ten branches at each node and a million leaves, whose numbers are added up"),
    Row("task/scaling_fib", "times", "more", "tasks", "scaling_fib", 36, fibonacci,
        "speed-up of task/fib from one worker to two", workers=(2,), only_ours=True),
    Row("task/scaling_nqueens", "times", "more", "tasks", "scaling_nqueens", 13, queens,
        "speed-up of task/nqueens from one worker to two", workers=(2,), only_ours=True),
    Row("task/for", "ms", "less", "tasks", "for", 10_000_000, same,
        "a loop over 10 million floats"),
    Row("task/wake", "us", "less", "tasks", "wake", 1_000, same,
        "a thread on CPU 0 sleeps for a result that one on CPU 1 computes: median", workers=(1,), value="p50"),
    Row("context/allocate", "ns/allocation", "less", "context", "allocate", 100_000_000, same,
        "16 to 256 bytes, discarded 1,000 at a time", workers=(1,)),
    Row("context/request", "ns/request", "less", "context", "request", 200_000, same,
        "200 small objects: strings, vectors, a map; then all are discarded", workers=(1,)),
    Row("context/create_release", "ns/context", "less", "context", "create_release", 10_000_000, same,
        "make a context, allocate once, release it", workers=(1,), only_ours=True),
    Row("context/rollback", "ns/rollback", "less", "context", "rollback", 12_800, same,
        "roll back over 10,000 objects", workers=(1,), only_ours=True),
    Row("context/owner_of", "ns/look-up", "less", "context", "owner_of", 200_000_000, same,
        "which context has this pointer", workers=(1,), only_ours=True),
    Row("context/idle_memory", "bytes/context", "less", "context", "context_memory", 100_000, same,
        "contexts in which 200 bytes are allocated", workers=(1,), only_ours=True),
    Row("context/json_pipelined", "us/request", "less", "json", "json_pipelined", 800_000, same,
        "what /json, pipelined, costs the server; its handler allocates in the request's context", workers=(1,), value="cpu_us"),
    Row("io/echo_64", "requests/s", "more", "echo", "echo_64", 300_000, same,
        "echo 64 bytes over each of 64 connections", workers=(1,)),
    Row("io/echo_64_cpu", "us/request", "less", "echo", "echo_64", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/echo_10k", "requests/s", "more", "echo", "echo_10k", 300_000, same,
        "echo 64 bytes over each of 10,000 connections", workers=(1,)),
    Row("io/echo_10k_cpu", "us/request", "less", "echo", "echo_10k", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/echo_10k_p99", "us", "less", "echo", "echo_10k", 300_000, same,
        "the same: from a request to its answer, of 99 in 100", workers=(1,), value="p99"),
    Row("io/echo_10k_rss", "KiB", "less", "echo", "echo_10k", 300_000, same,
        "the same: the server's resident memory", workers=(1,), value="rss_kb"),
    Row("io/http_plaintext", "requests/s", "more", "http", "http_plaintext", 300_000, same,
        "13 bytes of HTTP over each of 64 connections, kept alive", workers=(1,)),
    Row("io/http_plaintext_cpu", "us/request", "less", "http", "http_plaintext", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/http_plaintext_1000", "requests/s", "more", "http", "http_plaintext_1000", 300_000, same,
        "the same over each of 1,000 connections", workers=(1,)),
    Row("io/http_plaintext_1000_cpu", "us/request", "less", "http", "http_plaintext_1000", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/http_plaintext_1000_p99", "us", "less", "http", "http_plaintext_1000", 300_000, same,
        "the same: from a request to its answer, of 99 in 100", workers=(1,), value="p99"),
    Row("io/http_pipelined", "requests/s", "more", "http", "http_pipelined", 800_000, same,
        "16 requests at a time over each of 64 connections", workers=(1,)),
    Row("io/http_pipelined_cpu", "us/request", "less", "http", "http_pipelined", 800_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/http_static", "requests/s", "more", "http", "http_static", 200_000, same,
        "50,000 small files, at random, over each of 80 connections", workers=(1,)),
    Row("io/http_static_cpu", "us/request", "less", "http", "http_static", 200_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/idle_memory", "bytes/connection", "less", "http", "http_idle", 10_000, same,
        "connections of HTTP that have been answered and are idle; without the kernel's memory", workers=(1,)),
    Row("io/tls_handshakes", "handshakes/s", "more", "tls", "tls_handshakes", 10_000, same,
        "connect, handshake, one request and its answer, close", workers=(1,)),
    Row("io/tls_handshakes_cpu", "us/handshake", "less", "tls", "tls_handshakes", 10_000, same,
        "the same: what that costs the server", workers=(1,), value="cpu_us"),
    Row("io/tls_bulk", "MiB/s", "more", "tls", "tls_bulk", 4_000, same,
        "a file of 1 MiB over TLS, again and again, over each of 4 connections", workers=(1,)),
    Row("io/tls_bulk_cpu", "us/MiB", "less", "tls", "tls_bulk", 4_000, same,
        "the same: what that costs the server", workers=(1,), value="cpu_us"),
    Row("io/tls_resumed", "handshakes/s", "more", "tls", "tls_resumed", 10_000, same,
        "io/tls_handshakes, each of which continues the session of an earlier one", workers=(1,)),
    Row("io/tls_resumed_cpu", "us/handshake", "less", "tls", "tls_resumed", 10_000, same,
        "the same: what that costs the server", workers=(1,), value="cpu_us"),
    Row("io/https_plaintext", "requests/s", "more", "tls", "https_plaintext", 300_000, same,
        "13 bytes of HTTPS over each of 64 connections, kept alive", workers=(1,)),
    Row("io/https_plaintext_cpu", "us/request", "less", "tls", "https_plaintext", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/https_idle_memory", "bytes/connection", "less", "tls", "https_idle", 3_000, same,
        "connections of HTTPS that have been answered and are idle; without the kernel's memory", workers=(1,)),
    Row("io/h2_plaintext", "requests/s", "more", "h2", "h2_plaintext", 500_000, same,
        "13 bytes of HTTP/2 without TLS, 16 streams at a time over each of 64 connections", workers=(1,)),
    Row("io/h2_plaintext_cpu", "us/request", "less", "h2", "h2_plaintext", 500_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("io/gzip_json", "requests/s", "more", "h2", "gzip_json", 60_000, same,
        "4 KiB of JSON that the server compresses by gzip for each request, over each of 64 connections", workers=(1,)),
    Row("io/gzip_json_cpu", "us/request", "less", "h2", "gzip_json", 60_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("observe/big", "ns/ping+pong", "less", "observed_actors", "big", 20_000, times(120),
        "actor/big while the program is observed, beside the same without it"),
    Row("observe/ask", "ns/ask", "less", "observed_coro", "ask", 2_000_000, same, "the same for coro/ask"),
    Row("observe/http_plaintext", "requests/s", "more", "observed_http", "http_plaintext", 300_000, same,
        "the same for io/http_plaintext", workers=(1,)),
    Row("observe/http_plaintext_cpu", "us/request", "less", "observed_http", "http_plaintext", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("story/ping_pong", "ns/round trip", "less", "recorded_actors", "ping_pong", 2_000_000, same,
        "actor/ping_pong with a flight recorder, beside the same without it"),
    Row("story/counting", "ns/message", "less", "recorded_actors", "counting", 10_000_000, same,
        "the same for actor/counting"),
    Row("story/ask", "ns/ask", "less", "recorded_coro", "ask", 2_000_000, same, "the same for coro/ask"),
    Row("story/http_plaintext", "requests/s", "more", "recorded_http", "http_plaintext", 300_000, same,
        "the same for io/http_plaintext", workers=(1,)),
    Row("story/http_plaintext_cpu", "us/request", "less", "recorded_http", "http_plaintext", 300_000, same,
        "the same: what a request costs the server", workers=(1,), value="cpu_us"),
    Row("explore/clerks", "schedules/s", "more", "explore", "explore_clerks", 20_000, same,
        "a search runs two clerks that add to a stock, beside the same under one seed after the other", workers=(1,)),
    Row("explore/ring", "schedules/s", "more", "explore", "explore_ring", 2_000, same,
        "the same for 40 actors in a ring that pass 40 tokens five times on", workers=(1,)),
    Row("explore/echo", "schedules/s", "more", "explore", "explore_echo", 5_000, same,
        "the same for ten messages and their echoes over a simulated connection", workers=(1,)),
)


class NoSuchRow(Exception):
    pass


def all_cases(rows: tuple[Row, ...] = ROWS) -> list[Case]:
    return [Case(row, workers) for row in rows for workers in row.workers]


def select(globs: list[str], rows: tuple[Row, ...] = ROWS) -> list[Case]:
    """The cases whose name a glob matches, with or without its @workers. No globs: all."""
    cases = all_cases(rows)
    if not globs:
        return cases
    chosen = set()
    for glob in globs:
        matching = [case for case in cases if fnmatchcase(case.name, glob) or fnmatchcase(case.row.name, glob)]
        if not matching:
            names = "\n  ".join(case.name for case in cases)
            raise NoSuchRow(f"no row matches '{glob}'. There are:\n  {names}")
        chosen.update(case.name for case in matching)
    return [case for case in cases if case.name in chosen]


def by_run(cases: list[Case]) -> dict[Run, list[Case]]:
    groups: dict[Run, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.run, []).append(case)
    return groups
