"""Walks the public headers: each parameter and each public member that says how long something may take is a `troupe::time_span`, and each
point of the system's time a `troupe::wall_time`, which take a span of any unit and do not wrap. What keeps a type of std::chrono is in
`time_spans.txt`, with the reason why. Run with `write` to add what is missing, with the reason `?`, which this test refuses."""

import pathlib
import re
import sys

import _headers

LIST = pathlib.Path(__file__).resolve().parent / "time_spans.txt"
REASONS = {
    "result": "a value that the library gives; nobody converts it",
    "own": "of the library's own calls, which give it what a time_span was",
    "stored": "what a database keeps, in its own unit; it is checked where it is converted",
}
SPAN = (r"(?:const\s+)?(?:std::optional<)?(?:std::chrono::(?:nanoseconds|microseconds|milliseconds|seconds|minutes|hours|days|"
        r"(?:system_clock::)?time_point|sys_time<[^>]*>|sys_seconds|sys_days)\b)>?(?:\s*&)?")
PARAMETER = re.compile(rf"^(?:{SPAN})\s*(\w+)?\s*(?:=.*)?$", re.S)
MEMBER = re.compile(rf"^(?:mutable\s+|inline\s+|const\s+)*({SPAN})\s*(\w+)((?:\s*=[^,]*|\{{[^}}]*\}})?(?:\s*,\s*\w+(?:\s*=[^,]*)?)*)$", re.S)


def main():
    found = _headers.all_entries(PARAMETER, MEMBER, with_private_members=False)
    advice = f"it wraps for a coarse unit; make it a time_span or a wall_time, or list it in {LIST.name} with its reason"
    wrong = _headers.compare(found, LIST, REASONS, advice, write=sys.argv[1:] == ["write"])
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
