"""Builds a fuzzer and runs it: run.py NAME [SECONDS] [FOLDER].

NAME is `requests`, our framing of requests against Boost.Beast's, `inflations`, the compressed messages of WebSockets against
zlib alone, `values`, bodies of multipart/form-data, cookies and queries in pieces against the same at once,
`frames`, those of a client of HTTP/2, `proxies`, what a proxy says about its client, `decodings`, compressed bodies, `nats`, the bytes of a NATS server,
in pieces against the same at once, or `cluster`, what a peer sends to a node. What it finds is written to FOLDER (default: a temporary one) and printed; put it into
tests/fuzz/corpus, tests/fuzz/messages, tests/fuzz/values, tests/fuzz/frames, tests/fuzz/behind_proxy/corpus, tests/fuzz/coding/corpus,
tests/fuzz/nats/corpus or tests/fuzz/cluster/corpus when it is mended. Status 77: clang, Boost or nghttp2 is not installed.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("TROUPE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CXX = "clang++-22"
SKIPPED = 77


def run(*command):
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True)


def paths_of(*names, folder):
    return [f"{SOURCE}/{folder}/{name}.cpp" for name in names]


def library_of(header, *names):
    """How a library is linked that the build uses when it is there."""
    return [f"-l{name}" for name in names] if os.path.exists(f"/usr/include/{header}") else []


BROTLI = library_of("brotli/decode.h", "brotlidec", "brotlienc")
ZSTD = library_of("zstd.h", "zstd")

# The rest of the library, as it was built, for what needs most of it.
BUILT = os.environ.get("TROUPE_BINARY_DIR") or f"{SOURCE}/build/release"
ARCHIVES = [f"{BUILT}/libtroupe{part}.a" for part in ("_cluster", "_durable_postgres", "_durable", "_cron", "_sqlite", "_postgres", "_nats", "_json",
                                                      "_dns", "_tls", "")]
LIBRARIES = [f"-l{name}" for name in ("date-tz", "sqlite3", "pq", "simdjson", "cares", "uring", "ssl", "crypto", "z")]

# Of each fuzzer: its sources, what it is linked with, its corpus, and how it is run. Long inputs say nothing that short ones do not,
# and Beast reads each as often as it has requests.
FUZZERS = {
    "requests": (paths_of("h1/parser", "message", "fault", folder="src/http") +
                 paths_of("framing", "beast", "requests", folder="tests/fuzz") + glob.glob("/usr/share/llhttp/*.c"),
                 [], "corpus", ["-max_len=600", f"-dict={SOURCE}/tests/fuzz/requests.dict"]),
    "inflations": (paths_of("websocket/handshake/deflate", folder="src/http") +
                   paths_of("inflation", "inflations", folder="tests/fuzz"), ["-lz"], "messages", ["-max_len=2000"]),
    "values": (paths_of("accept", "cookie", "media_type", "multipart_parser", "percent", "value_text", folder="src/http/values") +
               paths_of("h1/date", "message", folder="src/http") + paths_of("values", "values_entry", folder="tests/fuzz"),
               [], "values", ["-max_len=500", f"-dict={SOURCE}/tests/fuzz/values.dict"]),
    "frames": (paths_of("h2/framing/frame_watch", "h2/framing/head_block", "h2/framing/header_lines", "h2/framing/session", "h1/output", "message", folder="src/http") +
               paths_of("frames", "frames_entry", folder="tests/fuzz"), ["-lnghttp2"], "frames", ["-max_len=1000"]),
    "proxies": (paths_of("behind_proxy/address", "behind_proxy/network", "behind_proxy/proxy_header", "behind_proxy/reports/forwarded",
                         "message", folder="src/http") +
                paths_of("io/sockets/endpoint", folder="src") +
                paths_of("proxies", "proxies_entry", folder="tests/fuzz/behind_proxy"), [], "behind_proxy/corpus",
                ["-max_len=700", f"-dict={SOURCE}/tests/fuzz/behind_proxy/proxies.dict"]),
    "decodings": (paths_of("coding/decoder", "coding/encoder", "message", folder="src/http") +
                  paths_of("decodings", "decodings_entry", folder="tests/fuzz/coding"),
                  ["-lz", *BROTLI, *ZSTD], "coding/corpus", ["-max_len=600", "-rss_limit_mb=4096"]),
    "nats": (paths_of("protocol/parser", "protocol/session", "protocol/info", "protocol/subject", "message", "error", folder="src/nats") +
             paths_of("document", "read", "write", folder="src/json") + paths_of("base/text/json_string", folder="src") +
             paths_of("nats", "nats_entry", folder="tests/fuzz/nats"), ["-lsimdjson"], "nats/corpus",
             ["-max_len=500", f"-dict={SOURCE}/tests/fuzz/nats/nats.dict"]),
    "cluster": (paths_of("actors_here", "away", "durable_actors", "frames", "served", "topics", folder="src/cluster/node") +
                paths_of("codec", folder="src/durable") + paths_of("cluster", "cluster_entry", folder="tests/fuzz/cluster"),
                ["-Wl,--start-group", *ARCHIVES, "-Wl,--end-group", *LIBRARIES], "cluster/corpus",
                ["-max_len=600", f"-dict={SOURCE}/tests/fuzz/cluster/cluster.dict"]),
}


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in FUZZERS:
        sys.exit(__doc__)
    seconds = sys.argv[2] if len(sys.argv) > 2 else "60"
    if shutil.which(CXX) is None:
        print(f"skipped: needs {CXX}")
        return SKIPPED
    if name == "requests" and not os.path.exists("/usr/include/boost/beast/http.hpp"):
        print("skipped: needs Boost.Beast")
        return SKIPPED
    if name == "frames" and not os.path.exists("/usr/include/nghttp2/nghttp2.h"):
        print("skipped: needs nghttp2")
        return SKIPPED
    if name == "cluster" and not os.path.exists(ARCHIVES[0]):
        print("the library is not built: build the target troupe in build/release first")
        return 1
    sources, libraries, corpus, how = FUZZERS[name]
    # What is linked with the library as it was built has its checks.
    checked = 0 if name == "cluster" else 1
    with tempfile.TemporaryDirectory(prefix="troupe-fuzz-") as here:
        found = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else here + "/found"
        seeds, grown, objects = here + "/seeds", here + "/grown", []
        for folder in (found, seeds, grown):
            os.makedirs(folder, exist_ok=True)
        flags = ["-O1", "-g1", f"-DTROUPE_CHECKED={checked}", "-DTROUPE_PLAIN_BLOCKS=0", "-DLLHTTP_STRICT_MODE=1", "-DTROUPE_HAS_LIBNGHTTP2=1", f"-DTROUPE_HAS_LIBBROTLIENC={len(BROTLI) // 2}",
                 f"-DTROUPE_HAS_LIBBROTLIDEC={len(BROTLI) // 2}", f"-DTROUPE_HAS_LIBZSTD={len(ZSTD)}", f"-I{SOURCE}/src", f"-I{SOURCE}/tests",
                 f"-I{SOURCE}/include", "-isystem", "/usr/share/include/llhttp", "-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=undefined"]
        for source in sources:
            objects.append(f"{here}/{os.path.basename(source)}.o")
            language = ["-x", "c++", "-std=c++23"] if source.endswith(".cpp") else ["-x", "c", "-w"]
            run(CXX, *flags, *language, "-c", source, "-o", objects[-1])
        run(CXX, "-fsanitize=fuzzer,address,undefined", *objects, *libraries, "-o", here + "/fuzzer")
        if name == "requests":
            run(CXX, "-std=c++23", f"-I{SOURCE}/src", f"-I{SOURCE}/include", f"{SOURCE}/tests/fuzz/vectors_as_files.cpp", "-o",
                here + "/seed")
            run(here + "/seed", seeds)
        run(here + "/fuzzer", f"-max_total_time={seconds}", "-timeout=10", *how, f"-artifact_prefix={found}/", "-print_final_stats=1",
            grown, seeds, f"{SOURCE}/tests/fuzz/{corpus}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"failed: {failed}")
