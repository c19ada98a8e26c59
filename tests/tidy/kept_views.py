"""Walks the public headers: each parameter and each member that refers to bytes of somebody else (a view, a span, a pointer) is in
`kept_views.txt`, with the reason why it may. A parameter that outlives its call is copied, or has a type that a temporary cannot make;
docs/protocols/outgoing.md says what the reasons mean. Run with `write` to add what is missing, with the reason `?`, which this test refuses."""

import pathlib
import re
import sys

import _headers

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "kept_views.txt"
REASONS = {
    "read": "is read before the call returns",
    "copied": "is copied before the call returns",
    "awaited": "is read until the awaited call has ended; its documentation says so",
    "written": "is where the call, or the awaited call, writes to",
    "result": "a plain value that the library gives; its documentation names the owner",
    "literal": "is made by the library of texts that live as long as the program",
    "named": "the object refers to what it was made of: that is what the class is for, and its documentation says so",
    "owner": "a pointer to an object of the library, which owns it or which its owner outlives",
}

TEXT = r"(?:std::)?(?:basic_)?string_view|(?:std::)?span\s*<[^;{}]*?>|const\s+(?:char|std::byte)\s*\*(?:\s*const)?"
POINTER = r"(?:const\s+)?[A-Za-z_][\w:]*(?:<[^;{}()]*>)?(?:\s+const)?\s*\*(?:\s*const)?"
PARAMETER = re.compile(rf"^(?:const\s+)?({TEXT}|{POINTER})\s*(\w+)\s*(?:=.*)?$", re.S)
MEMBER = re.compile(rf"^(?:mutable\s+|inline\s+|constexpr\s+|static\s+|const\s+)*({TEXT})\s*(\w+)((?:\s*=[^,]*|\{{[^}}]*\}})?(?:\s*,\s*\w+(?:\s*=[^,]*)?)*)$", re.S)


def main():
    found = _headers.all_entries(PARAMETER, MEMBER, internal=_headers.INTERNAL)
    advice = (f"a view, a span or a pointer; copy it, take a type that a temporary cannot make, or list it in {LIST.name} with the reason why it "
              "may refer to bytes of somebody else")
    wrong = _headers.compare(found, LIST, REASONS, advice, write=sys.argv[1:] == ["write"])
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
