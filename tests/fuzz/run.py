"""Builds the fuzzer of our request framing against Boost.Beast's, and runs it: run.py [SECONDS] [FOLDER].

What it finds is written to FOLDER (default: a temporary one) and printed; put it into tests/fuzz/corpus when it is mended.
Status 77: clang or Boost is not here.
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


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    if shutil.which(CXX) is None:
        print(f"skipped: {CXX} is not here")
        return SKIPPED
    if not os.path.exists("/usr/include/boost/beast/http.hpp"):
        print("skipped: libboost-dev is not here")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="troupe-fuzz-") as here:
        found = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else here + "/found"
        seeds, grown, objects = here + "/seeds", here + "/grown", []
        for folder in (found, seeds, grown):
            os.makedirs(folder, exist_ok=True)
        flags = ["-O1", "-g1", "-DTROUPE_CHECKED=1", "-DLLHTTP_STRICT_MODE=1", f"-I{SOURCE}/src", f"-I{SOURCE}/tests",
                 f"-I{SOURCE}/include", "-isystem", "/usr/share/include/llhttp", "-fsanitize=fuzzer-no-link,address,undefined"]
        ours = [f"{SOURCE}/src/http/{name}.cpp" for name in ("parser", "head_check", "message", "fault")]
        ours += [f"{SOURCE}/tests/fuzz/{name}.cpp" for name in ("framing", "beast", "requests")]
        for source in ours + glob.glob("/usr/share/llhttp/*.c"):
            objects.append(f"{here}/{os.path.basename(source)}.o")
            language = ["-x", "c++", "-std=c++23"] if source.endswith(".cpp") else ["-x", "c", "-w"]
            run(CXX, *flags, *language, "-c", source, "-o", objects[-1])
        run(CXX, "-fsanitize=fuzzer,address,undefined", *objects, "-o", here + "/fuzzer")
        run(CXX, "-std=c++23", f"-I{SOURCE}/src", f"-I{SOURCE}/include", f"{SOURCE}/tests/fuzz/vectors_as_files.cpp", "-o", here + "/seed")
        run(here + "/seed", seeds)
        # Long inputs say nothing that short ones do not, and Beast reads each as often as it has requests.
        run(here + "/fuzzer", f"-max_total_time={seconds}", "-max_len=600", "-timeout=10", f"-dict={SOURCE}/tests/fuzz/requests.dict",
            f"-artifact_prefix={found}/", "-print_final_stats=1", grown, seeds, SOURCE + "/tests/fuzz/corpus")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"failed: {failed}")
