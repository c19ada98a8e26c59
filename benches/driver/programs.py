"""programs: who answers, what each needs to be installed, and how its programs are built and started."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Mapping

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "benches"
BUILT = ROOT / "build" / "peers"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Program:
    folder: Path  # the build runs here; a file in it that is newer than the product means a new build
    build: tuple[Command, ...]
    product: Path  # what the build makes
    start: Callable[[int], Command]  # workers -> the command, without BENCH WORKERS SIZE
    also_watch: tuple[Path, ...] = ()  # sources outside the folder
    environment: Mapping[str, str] = field(default_factory=dict)  # of the build
    knows_itself: bool = False  # the build is asked each time, for it knows best what is out of date


@dataclass(frozen=True)
class Contestant:
    name: str
    title: str
    programs: Mapping[str, Program]  # by the key that rows name
    needs: tuple[str, ...] = ()  # commands, or globs of files, without which it is not installed
    packages: tuple[str, ...] = ()  # of Debian 12
    sizes: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # bench -> another size, and why
    lacks: Mapping[str, str] = field(default_factory=dict)  # bench -> why it cannot answer
    kind: str = "runtime"  # what it is a rival of; rows of another kind do not ask it


def executable(path: Path) -> Callable[[int], Command]:
    return lambda workers: (str(path),)


def cpp(source: str, product: str, *flags: str) -> Program:
    path, output = SOURCES / source, BUILT / product
    # Aligned: where a small loop happens to lie would decide as much as what it does.
    command = ("g++", "-O3", "-march=native", "-falign-functions=64", "-falign-loops=64", "-pthread", path.name, "-o", str(output), *flags)
    return Program(path.parent, (command,), output, executable(output), also_watch=(SOURCES / "measure.hpp", SOURCES / "floor" / "loopback.hpp"))


def erlang_actors() -> Program:
    output = BUILT / "erlang"
    modules = ("actors.erl", "asks.erl", "crowds.erl", "measure.erl", "streams.erl", "waiting.erl")

    def start(workers: int) -> Command:
        # +P: room for five million processes.
        return ("erl", "-noshell", "-noinput", "+S", f"{workers}:{workers}", "+P", "10000000",
                "-pa", str(output), "-run", "actors", "main")

    return Program(SOURCES / "peers/erlang", (("erlc", "-o", str(output), *modules),), output / "waiting.beam", start)


def go_actors() -> Program:
    output = BUILT / "go_actors"
    command = ("go", "build", "-buildvcs=false", "-o", str(output), ".")
    return Program(SOURCES / "peers/go", (command,), output, executable(output))


def tokio_actors() -> Program:
    # Debian's cargo and rustc by their full paths: only they fit the sources that Debian installs. From a
    # copy, since cargo writes its lock file beside the manifest.
    target = BUILT / "tokio"
    copy = ("cp", "-rT", ".", str(target / "source"))
    cargo = ("/usr/bin/cargo", "build", "--quiet", "--release", "--offline",
             "--manifest-path", str(target / "source/Cargo.toml"))
    product = target / "release/actors"
    return Program(SOURCES / "peers/tokio", (("mkdir", "-p", str(target)), copy, cargo), product,
                   executable(product), environment={"RUSTC": "/usr/bin/rustc", "CARGO_TARGET_DIR": str(target)})


def troupe(name: str) -> Program:
    product = ROOT / f"build/release/benches/bench_{name}"
    configure = ("cmake", "--preset", "release", "-DTROUPE_BENCH=ON")
    compile_ = ("cmake", "--build", "--preset", "release", "--target", product.name)
    return Program(ROOT, (configure, compile_), product, executable(product), knows_itself=True)


# Its test builds it, so that it is there without TROUPE_BENCH.
INSTRUCTIONS = replace(troupe("instructions"), product=ROOT / "build/release/tests/instructions/bench_instructions")


def all_by(program: Program) -> dict[str, Program]:
    return {"actors": program, "wake": program, "coro": program, "kit": program}


def tasks(source: str, product: str, *flags: str) -> Program:
    program = cpp(source, product, *flags)
    return replace(program, also_watch=(*program.also_watch, SOURCES / "task_work.hpp"))


def allocator(name: str, arena: str, *flags: str) -> dict[str, Program]:
    program = cpp("peers/allocators/main.cpp", f"allocator_{name}", "-std=c++23", f"-DARENA={arena}", *flags)
    return {"context": replace(program, also_watch=(*program.also_watch, SOURCES / "allocations.hpp"))}


# Servers that two load generators ask have a product for each: what was built is known by its product.
def served(server: Program, load: str = "echo/load.cpp", *flags: str) -> Program:
    """A server, asked by a load generator, which starts it."""
    source = SOURCES / load
    product = BUILT / load.replace("/", "_").removesuffix(".cpp")
    compile_ = ("g++", "-O3", "-march=native", "-std=c++23", str(source), "-o", str(product), *flags)
    watched = (source, SOURCES / "server_process.hpp", *(SOURCES / "http").glob("*.hpp"))
    return replace(server, build=(compile_, *server.build), start=lambda workers: (str(product), *server.start(workers)),
                   also_watch=(*server.also_watch, *watched))


def asked_http(server: Program) -> Program:
    return served(server, "http/load.cpp")


def asked_tls(server: Program) -> Program:
    return served(server, "http/load_tls.cpp", "-lssl", "-lcrypto")


def asked_h2(server: Program) -> Program:
    """A server, asked by h2load, which a script starts beside it."""
    script = SOURCES / "http/load_h2.py"
    return replace(server, start=lambda workers: (str(script), *server.start(workers)), also_watch=(*server.also_watch, script))


def with_argument(server: Program, argument: str) -> Program:
    return replace(server, start=lambda workers: (*server.start(workers), argument))


def go_server(folder: str, name: str) -> Program:
    output = BUILT / f"go_{name}"
    return Program(SOURCES / folder / "go", (("go", "build", "-buildvcs=false", "-o", str(output), "."),), output,
                   executable(output))


def rust_server(folder: str, product_name: str) -> Program:
    target = BUILT / folder.replace("/", "_")
    copy = ("cp", "-rT", ".", str(target / "source"))
    cargo = ("/usr/bin/cargo", "build", "--quiet", "--release", "--offline",
             "--manifest-path", str(target / "source/Cargo.toml"))
    product = target / "release" / product_name
    return Program(SOURCES / folder, (("mkdir", "-p", str(target)), copy, cargo), product,
                   executable(product), environment={"RUSTC": "/usr/bin/rustc", "CARGO_TARGET_DIR": str(target)})


def scripted(server: str, name: str) -> Program:
    """Nothing to build: a script that writes a configuration and becomes the server."""
    script = SOURCES / f"http/{server}/serve.sh"
    product = BUILT / f"{server}_{name}.sh"
    return Program(script.parent, (("cp", str(script), str(product)),), product, executable(product))


def databases(program: Program) -> dict[str, Program]:
    """For PostgreSQL, a script starts a server beside it."""
    script = str(SOURCES / "db/with_postgres.sh")
    program = replace(program, also_watch=(*program.also_watch, SOURCES / "db/work.hpp"))
    return {"sqlite": program, "postgres": replace(program, start=lambda workers: (script, *program.start(workers)))}


def database_web(server: Program) -> Program:
    """A server that answers from PostgreSQL, asked by a load generator; a script starts PostgreSQL beside both."""
    script = str(SOURCES / "db/with_postgres.sh")
    asked = served(server, "db/load.cpp", "-I/usr/include/postgresql", "-lpq")
    return replace(asked, start=lambda workers: (script, *asked.start(workers)),
                   also_watch=(*asked.also_watch, *(SOURCES / "db").glob("*.hpp")))


def messaging(program: Program) -> dict[str, Program]:
    """A script starts a NATS server beside it."""
    script = str(SOURCES / "nats/with_nats.sh")
    started = replace(program, also_watch=(*program.also_watch, SOURCES / "nats/work.hpp"),
                      start=lambda workers: (script, *program.start(workers)))
    return {"nats": started, "cluster": started}


def between_nodes(program: Program) -> dict[str, Program]:
    """A script starts a NATS server beside it, and another one a PostgreSQL server."""
    scripts = (str(SOURCES / "nats/with_nats.sh"), str(SOURCES / "db/with_postgres.sh"))
    return {"cluster": replace(program, start=lambda workers: (*scripts, *program.start(workers))), "cluster_alone": program}


def observed(program: Program) -> Program:
    """The same, while it counts its messages for whoever looks into it."""
    return replace(program, start=lambda workers: ("env", "TROUPE_OBSERVE=1", *program.start(workers)))


def recorded(program: Program) -> Program:
    """The same, with a flight recorder."""
    return replace(program, start=lambda workers: ("env", "TROUPE_FLIGHT_RECORDER=16", *program.start(workers)))


def kind_of(program: str) -> str:
    """Of whom the rows of a program ask."""
    if program.startswith("observed_"):
        return "unobserved"
    if program.startswith("recorded_"):
        return "unrecorded"
    if program == "explore":
        return "seeds"
    return {"sqlite": "database", "postgres": "database", "postgres_web": "database", "nats": "messaging", "cluster": "messaging", "cluster_alone": "plain", "context": "allocator", "tasks": "tasks", "ramp": "tasks", "json": "allocator", "http": "web", "tls": "web", "h2": "web2"}.get(program, "runtime")


TROUPE = Contestant("troupe", "this library",
                    {**all_by(troupe("actors")), "coro": troupe("coro"), "kit": troupe("kit"), "context": troupe("contexts"), "tasks": troupe("tasks"), "ramp": troupe("tasks"), "explore": troupe("explore"),
                     **databases(troupe("db")), "postgres_web": database_web(troupe("db_web")),
                     **messaging(troupe("nats")), **between_nodes(troupe("cluster")),
                     "echo": served(troupe("echo")), "http": asked_http(with_argument(troupe("http"), "context")),
                     "json": asked_http(with_argument(troupe("http"), "context")), "tls": asked_tls(troupe("tls")), "h2": asked_h2(with_argument(troupe("http"), "context")),
                     "observed_actors": observed(troupe("actors")), "observed_coro": observed(troupe("coro")),
                     "observed_http": observed(asked_http(with_argument(troupe("http"), "context"))),
                     "recorded_actors": recorded(troupe("actors")), "recorded_coro": recorded(troupe("coro")),
                     "recorded_http": recorded(asked_http(with_argument(troupe("http"), "context")))})

# Of those whose actors can ask, but that have nothing like a task beside them.
NO_TASKS = {bench: "it has no tasks beside its actors" for bench in ("spawn", "await_ready", "switch", "memory", "timers")}

RAMPS = ("ramp", *(f"ramp_{way}" for way in ("halves", "for", "reduce", "sort", "lazies", "tasks", "actors")))

# Of those without locks or channels of this kind.
LOCKS = ("mutex", "mutex_64", "semaphore", "semaphore_64")
CHANNELS = ("channel_1_1", "channel_4_1", "channel_4_4", "rendezvous", "broadcast_1_8", "select_8")
KIT = (*LOCKS, *CHANNELS, "scope", "async_generator")
NO_KIT = {bench: "it has nothing like it" for bench in KIT}

# Of web servers without TLS.
TLS = ("tls_handshakes", "tls_resumed", "tls_bulk", "https_plaintext", "https_idle")

# Of bare loops over a database.
NO_WEB = {bench: "it has no HTTP" for bench in ("postgres_updates", "fortunes")}

# For contestants that no user would choose for this.
NO_SERVER = {bench: "its echo server is not written" for bench in ("echo_64", "echo_10k")}

# Of allocators that our server has no handler for.
NO_HANDLER = {"json_pipelined": "it is asked of malloc"}

FLOOR = Contestant(
    "floor", "one thread, one exchange and one CAS a message; for wake_latency a bare futex",
    {"actors": cpp("floor/actors.cpp", "floor_actors", "-std=c++23"),
     "wake": cpp("floor/futex.cpp", "floor_futex", "-std=c++23"),
     "tasks": tasks("floor/tasks.cpp", "floor_tasks", "-std=c++23"),
     "echo": served(cpp("echo/floor_epoll.cpp", "echo_epoll", "-std=c++23")),
     "http": asked_http(cpp("http/floor_epoll.cpp", "http_epoll", "-std=c++23"))},
    lacks={"idle_cpu": "it has no workers", "scaling": "it has one thread"})

PEERS = (
    Contestant(
        "go", "Go 1.19",
        {**all_by(go_actors()), "tasks": go_actors(), "echo": served(go_server("echo", "echo")),
         "http": asked_http(go_server("http", "http")),
         "tls": asked_tls(go_server("http", "tls"))}, ("go",), ("golang-go",),
        sizes={"idle_memory": (500_000, "5,000,000 would need over 8 GB")},
        lacks={"wake_latency": "a goroutine is never outside its runtime",
               "await_ready": "a goroutine calls a function, or waits for a channel",
               **{bench: "its own locks hold a thread, not a task" for bench in LOCKS},
               "broadcast_1_8": "it has nothing like it",
               "async_generator": "its iterators are functions that call a function",
               "scope": "a WaitGroup counts goroutines, and neither joins nor cancels them",
               **{bench: "its goroutines are asked in fib and skynet" for bench in ("fib_lazy", "nqueens", "nqueens_fork", "nqueens_cut", "for", "wake")}}),
    Contestant(
        "erlang", "Erlang/OTP 25", all_by(erlang_actors()), ("erl", "erlc"), ("erlang-base",),
        lacks={"wake_latency": "no thread is outside its runtime", **NO_TASKS, **NO_KIT, **NO_SERVER}),
    Contestant(
        "tokio", "tokio 1.24", {**all_by(tokio_actors()), "echo": served(rust_server("echo/tokio", "echo"))},
        ("/usr/bin/cargo", "/usr/bin/rustc", "/usr/share/cargo/registry/tokio-1*"),
        ("cargo", "librust-tokio-dev"),
        lacks={"channel_4_4": "its channels have one receiver", "rendezvous": "its channels hold one value at least"}),
    Contestant(
        "caf", "CAF 0.17",
        all_by(cpp("peers/caf/actors.cpp", "caf_actors", "-std=c++17", "-lcaf_core")),
        ("g++", "/usr/include/caf/all.hpp"), ("g++", "libcaf-dev"), lacks={**NO_TASKS, **NO_KIT, **NO_SERVER}),
    Contestant(
        "tbb", "oneTBB 2021.8", dict.fromkeys(("tasks", "ramp"), tasks("peers/tbb/tasks.cpp", "tbb_tasks", "-std=c++17", "-ltbb")),
        ("g++", "/usr/include/tbb/task_group.h"), ("g++", "libtbb-dev"),
        lacks={"wake": "its waiters take other work, and spin",
               **{bench: "it has nothing like it" for bench in ("ramp_reduce", "ramp_sort", "ramp_lazies", "ramp_tasks", "ramp_actors")}},
        kind="tasks"),
    Contestant(
        "async", "std::async", {"tasks": tasks("peers/async/tasks.cpp", "async_tasks", "-std=c++20")}, ("g++",), ("g++",),
        sizes={"fib": (18, "more threads than a process may have, at 34"),
               "skynet": (10_000, "more threads than a process may have, at 1,000,000")},
        lacks={bench: "it would be millions of threads" for bench in ("nqueens", "nqueens_fork")} | {bench: "it has a thread for each part" for bench in RAMPS}, kind="tasks"),
    Contestant("uring", "a bare loop over io_uring",
               {"echo": served(cpp("echo/floor_uring.cpp", "echo_uring", "-std=c++23", "-luring"))},
               ("g++", "/usr/include/liburing.h"), ("g++", "liburing-dev"), kind="server"),
    Contestant("asio", "Asio 1.22", {"echo": served(cpp("echo/asio.cpp", "echo_asio", "-std=c++20"))},
               ("g++", "/usr/include/asio.hpp"), ("g++", "libasio-dev"), kind="server"),
    Contestant("nginx", "nginx 1.22", {"http": asked_http(scripted("nginx", "http")), "tls": asked_tls(scripted("nginx", "tls")),
                                       "h2": asked_h2(scripted("nginx", "h2"))},
               ("/usr/sbin/nginx", "openssl", "/usr/include/openssl/ssl.h"), ("nginx-light", "openssl", "libssl-dev"), kind="web"),
    Contestant("h2o", "h2o 2.2", {"h2": asked_h2(scripted("h2o", "h2"))}, ("h2o", "h2load", "curl"), ("h2o", "nghttp2-client", "curl"), kind="web2"),
    Contestant("nghttpd", "nghttpd 1.52", {"h2": asked_h2(scripted("nghttpd", "h2"))}, ("nghttpd", "h2load", "curl"),
               ("nghttp2-server", "nghttp2-client", "curl"), lacks={"gzip_json": "it compresses nothing"}, kind="web2"),
    Contestant("hyper", "hyper 0.14", {"http": asked_http(rust_server("http/hyper", "http_hyper"))},
               ("/usr/bin/cargo", "/usr/bin/rustc", "/usr/share/cargo/registry/hyper-0.14*"),
               ("cargo", "librust-hyper-dev", "librust-tokio-dev"),
               lacks={"http_static": "it serves no files", **{bench: "it has no TLS" for bench in TLS}}, kind="web"),
    Contestant("bare", "bare loops over sqlite3 and libpq",
               databases(cpp("db/bare.cpp", "db_bare", "-std=c++23", "-I/usr/include/postgresql", "-lsqlite3", "-lpq")),
               ("g++", "/usr/include/sqlite3.h", "/usr/include/postgresql/libpq-fe.h", "/usr/lib/postgresql/*/bin/initdb"),
               ("g++", "libsqlite3-dev", "libpq-dev", "postgresql-15"), lacks={"durable_idle": "it has no actors", **NO_WEB}, kind="database"),
    Contestant("tokio_postgres", "tokio-postgres 0.7, and hyper 0.14 before it",
               {"postgres": databases(rust_server("db/tokio_postgres", "queries"))["postgres"],
                "postgres_web": database_web(rust_server("db/tokio_postgres", "web"))},
               ("/usr/bin/cargo", "/usr/bin/rustc", "/usr/share/cargo/registry/hyper-0.14*", "/usr/share/cargo/registry/tokio-postgres-0.7*",
                "g++", "/usr/include/postgresql/libpq-fe.h", "/usr/lib/postgresql/*/bin/initdb"),
               ("cargo", "librust-hyper-dev", "librust-tokio-dev", "librust-tokio-postgres-dev", "librust-futures-util-dev",
                "g++", "libpq-dev", "postgresql-15"),
               lacks={bench: "it is a client of PostgreSQL" for bench in ("sqlite_query", "sqlite_insert", "durable_turns", "durable_idle")},
               kind="database"),
    Contestant("sockets", "blocking sockets", messaging(cpp("nats/bare.cpp", "nats_sockets", "-std=c++20", "-pthread")),
               ("g++", "/usr/sbin/nats-server"), ("g++", "nats-server"), lacks={"cluster_activate": "it has no actors"}, kind="messaging"),
    Contestant("libnats", "libnats 3.4", messaging(cpp("nats/libnats.cpp", "nats_libnats", "-std=c++20", "-lnats")),
               ("g++", "/usr/include/nats/nats.h", "/usr/sbin/nats-server"), ("g++", "libnats-dev", "nats-server"), lacks={"cluster_activate": "it has no actors"}, kind="messaging"),
    Contestant("plain", "plain actors of this library", {"cluster_alone": troupe("plain_asks")}, kind="plain"),
    Contestant("unobserved", "this library, without observation",
               {"observed_actors": troupe("actors"), "observed_coro": troupe("coro"),
                "observed_http": asked_http(with_argument(troupe("http"), "context"))}, kind="unobserved"),
    Contestant("unrecorded", "this library, without a flight recorder",
               {"recorded_actors": troupe("actors"), "recorded_coro": troupe("coro"),
                "recorded_http": asked_http(with_argument(troupe("http"), "context"))}, kind="unrecorded"),
    Contestant("seeds", "this library, without a search", {"explore": troupe("seeds")}, kind="seeds"),
    Contestant("malloc", "glibc's malloc",
               {**allocator("malloc", "malloc_arena"), "json": asked_http(with_argument(troupe("http"), "malloc"))},
               ("g++",), ("g++",), kind="allocator"),
    Contestant(
        "mimalloc", "mimalloc 2.0.9", allocator("mimalloc", "malloc_arena", "-Wl,--no-as-needed", "-lmimalloc"),
        ("g++", "/usr/lib/*/libmimalloc.so"), ("g++", "libmimalloc-dev"), lacks=NO_HANDLER, kind="allocator"),
    Contestant(
        "jemalloc", "jemalloc 5.3", allocator("jemalloc", "malloc_arena", "-Wl,--no-as-needed", "-ljemalloc"),
        ("g++", "/usr/lib/*/libjemalloc.so"), ("g++", "libjemalloc-dev"), lacks=NO_HANDLER, kind="allocator"),
    Contestant("pmr", "std::pmr::monotonic_buffer_resource", allocator("pmr", "monotonic_arena"), ("g++",), ("g++",),
               lacks=NO_HANDLER, kind="allocator"),
)


class NoSuchPeer(Exception):
    pass


def choose_peers(text: str | None, peers: tuple[Contestant, ...] = PEERS) -> list[Contestant]:
    """The peers of a comma-separated list, in the table's order; "none" for none, None for all."""
    if text is None:
        return list(peers)
    if text == "none":
        return []
    names = [name.strip() for name in text.split(",")]
    known = [peer.name for peer in peers]
    for name in names:
        if name not in known:
            raise NoSuchPeer(f"no peer is called '{name}'. There are: {', '.join(known)} (or none)")
    return [peer for peer in peers if peer.name in names]
