#!/usr/bin/env python3
"""Where the members of the public classes lie, and the values of the enumerators. Usage: members.py

The rest of what programs have compiled in beside layouts.py: two members that change places keep the size of a class.
libabigail's abidw reads it from the debug information of all headers. abi/members.txt keeps it; ABI_WRITE=1 writes it
anew. Templates are left out, and so are the headers that need Asio.
"""
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import layouts

KEPT = layouts.KEPT.with_name("members.txt")
OBJECT, READ = layouts.WORK / "members.so", layouts.WORK / "members.abi"


def call(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=layouts.STEP_S)
    if done.returncode != 0:
        sys.exit(f"members: {command[0]} fails:\n{done.stdout[-2000:]}")


def read():
    """All types of the headers, as libabigail's XML."""
    layouts.WORK.mkdir(parents=True, exist_ok=True)
    together = layouts.all_headers()
    call(layouts.COMPILER, "-std=c++20", f"-I{layouts.SOURCE}/include", *layouts.SETTINGS, "-g",
         "-fno-eliminate-unused-debug-types", "-fPIC", "-shared", together, "-o", OBJECT)
    call("abidw", "--load-all-types", "--no-show-locs", "--no-corpus-path", "--out-file", READ, OBJECT)
    return xml.etree.ElementTree.parse(READ).getroot()


def of_enumeration(element, name):
    for value in element.iter("enumerator"):
        yield f"{name} has {value.get('name')} = {value.get('value')}"


def of_class(element, name):
    for member in element.findall("data-member"):
        bits = member.get("layout-offset-in-bits")
        if bits is not None:
            yield f"{name} has {member.find('var-decl').get('name') or 'an anonymous member'} at " + (
                f"{int(bits) // 8}" if int(bits) % 8 == 0 else f"{int(bits)} bits")


def lines(element, scope):
    """A line for each member and enumerator in this scope and below it."""
    for part in element:
        if part.tag in ("abi-instr", "member-type"):
            yield from lines(part, scope)
            continue
        name = f"{scope}::{part.get('name')}" if scope else part.get("name") or ""
        if part.tag == "namespace-decl":
            yield from lines(part, name)
        elif layouts.PLAIN_NAME.fullmatch(name) and "__anonymous" not in name:
            if part.tag == "enum-decl":
                yield from of_enumeration(part, name)
            elif part.tag in ("class-decl", "union-decl"):
                yield from of_class(part, name)
                yield from lines(part, name)


def main():
    if not layouts.is_by_gcc():
        print("package: skipped: needs a build with g++")
        return 77
    if not shutil.which("abidw"):
        print("package: skipped: needs abidw")
        return 77
    found = set(lines(read(), ""))
    if "ABI_WRITE" in os.environ:
        KEPT.write_text("\n".join(sorted(found)) + "\n")
    changed = sorted(set(KEPT.read_text().splitlines()) - found)
    if changed:
        sys.exit("members: programs that were compiled before find another value (docs/stability.md; ABI_WRITE=1 keeps the "
                 "new one, as after a private member was renamed):\n" + "\n".join(changed[:20]))
    print(f"members: {len(found)} lines as they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
