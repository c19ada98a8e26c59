"""Inside a layer includes point down, too: between units (`x.hpp` with `x.cpp`) and between rooms (folders). The includes that close a cycle
today are in `rooms.txt`. A new one fails, and so does an entry that is not needed any more: the list only gets shorter.
The README of each layer lists the rooms of the layer from the ground up; each page of docs/protocols/ stands in a README.

rooms.py          checks
rooms.py show     prints what lies in cycles, by layer
rooms.py write    writes the list anew; reasons are kept
"""

import collections
import pathlib
import re
import sys

import layers

# A room in the README of its layer; `./` is the layer's own folder.
LISTED = re.compile(r"- `([\w./]+)/`: ")
PROTOCOL = re.compile(r"\]\(\.\./\.\./(docs/protocols/\w+\.md)\)")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = pathlib.Path(__file__).resolve().parent / "rooms.txt"
HEAD = """# Includes that close a cycle between the units or the rooms of a layer (rooms.py), and the reason of those that stay:
# KIND FROM TO [reason]
"""


def unit_of(path):
    """`include/troupe/task/task.hpp` and `src/task/task.cpp` are one unit, `task/task`."""
    inside = path.relative_to(ROOT / "include" / "troupe") if path.is_relative_to(ROOT / "include") else path.relative_to(ROOT / "src")
    return str(inside.with_suffix(""))


def sources():
    for folder in (ROOT / "include" / "troupe", ROOT / "src"):
        for path in sorted(folder.rglob("*")):
            tested = re.search(r"\.(test|model|bench)\.", path.name)
            if path.suffix in (".hpp", ".h", ".cpp") and not tested and path.parent != ROOT / "include" / "troupe" and "/" in unit_of(path):
                yield path


def includes():
    """The pairs of units, with how many lines the file has that includes."""
    known, lines, found = set(), collections.Counter(), set()
    paths = list(sources())
    for path in paths:
        known.add(unit_of(path))
    for path in paths:
        text = path.read_text().splitlines()
        lines[unit_of(path)] += len(text)
        for line in text:
            named = layers.INCLUDE.match(line)
            if named:
                other = str(pathlib.PurePath(named.group(2).removeprefix("troupe/")).with_suffix(""))
                if other in known and other != unit_of(path):
                    found.add((unit_of(path), other))
    return found, lines


def layer(name):
    return name.split("/")[0]


def room(unit):
    return unit.rsplit("/", 1)[0]


def graphs():
    """For each kind the edges inside of layers."""
    units = {(one, other) for one, other in includes()[0] if layer(one) == layer(other)}
    rooms = {(room(one), room(other)) for one, other in units if room(one) != room(other)}
    return {"unit": units, "room": rooms}


def cycles(edges):
    """The strongly connected sets of more than one node (Tarjan's algorithm, without recursion)."""
    after = collections.defaultdict(list)
    for one, other in sorted(edges):
        after[one].append(other)
    number, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(after):
        if root in number:
            continue
        work = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(after[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    part = set()
                    while node not in part:
                        part.add(stack.pop())
                    on_stack -= part
                    if len(part) > 1:
                        found.append(part)
    return found


def needed(taken, edges):
    """Those of `taken` that close a cycle, if only these are left out."""
    for edge in sorted(taken):
        if not cycles(edges - (taken - {edge})):
            taken = taken - {edge}
    return taken


def feedback(edges):
    """Edges without which there is no cycle; none of them could stay."""
    taken = set()
    while True:
        parts = cycles(edges - taken)
        if not parts:
            break
        for part in parts:
            inner = {edge for edge in edges - taken if edge[0] in part and edge[1] in part}
            # An order with as few edges against it as moving single nodes gives.
            order = sorted(part, key=lambda node: (sum(edge[0] == node for edge in inner) - sum(edge[1] == node for edge in inner), node))
            best = order_of(order, inner)
            place = {node: at for at, node in enumerate(best)}
            taken |= {edge for edge in inner if place[edge[0]] < place[edge[1]]}
    return needed(taken, edges)


def order_of(order, edges):
    """From the ground up: each node is moved to its best place until none moves."""
    around = collections.defaultdict(list)
    for one, other in edges:
        around[one].append((other, True))
        around[other].append((one, False))
    moved = True
    while moved:
        moved = False
        for node in list(order):
            rest = [other for other in order if other != node]
            place = {other: at for at, other in enumerate(rest)}
            # the cost at place 0: everything that the node includes lies above it
            cost, steps = 0, collections.Counter()
            for other, is_below in around[node]:
                if is_below:
                    cost += 1
                    steps[place[other] + 1] -= 1
                else:
                    steps[place[other] + 1] += 1
            best, best_at, now_at, at_now = cost, 0, order.index(node), None
            for at in range(len(rest) + 1):
                cost += steps[at]
                if at == now_at:
                    at_now = cost
                if cost < best:
                    best, best_at = cost, at
            if at_now is None or best < at_now:
                order[:] = rest[:best_at] + [node] + rest[best_at:]
                moved = True
    return order


def read():
    listed = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        if line and not line.startswith("#"):
            kind, one, other, *reason = line.split(" ", 3)
            listed[kind, one, other] = " ".join(reason)
    return listed


def check():
    listed, wrong = read(), []
    for kind, edges in graphs().items():
        known = {(one, other) for of, one, other in listed if of == kind}
        wrong += [f"{LIST.name}: {kind} {one} {other} is no include any more: delete the line" for one, other in sorted(known - edges)]
        known &= edges
        for part in cycles(edges - known):
            shown = sorted(edge for edge in edges - known if set(edge) <= part)
            wrong.append(f"a new cycle of {kind}s: " + ", ".join(f"{one} includes {other}" for one, other in shown[:12]))
        for edge in sorted(known):
            if not cycles(edges - (known - {edge})):
                wrong.append(f"{LIST.name}: {kind} {edge[0]} {edge[1]} closes no cycle any more: delete the line")
    return wrong


def check_readmes(root, inside, edges):
    """`inside` has the rooms of each layer, `edges` the includes between rooms that point down."""
    wrong, linked = [], set()
    for name, rooms in inside.items():
        readme = pathlib.Path("src") / name / "README.md"
        if not (root / readme).is_file():
            wrong.append(f"{readme}: is missing: say what the layer is for, and list its rooms")
            continue
        text = (root / readme).read_text()
        linked.update(PROTOCOL.findall(text))
        listed = [name if room == "." else f"{name}/{room}" for room in re.findall(rf"(?m)^{LISTED.pattern}", text)]
        if len(rooms) > 1 or listed:
            wrong += [f"{readme}: does not list the room {room}/" for room in sorted(rooms - set(listed))]
            wrong += [f"{readme}: lists {room}/, which is no room" for room in listed if room not in rooms]
        wrong += [f"{readme}: lists {one}/ before {other}/, which it includes" for one, other in sorted(edges)
                  if one in listed and other in listed and listed.index(one) < listed.index(other)]
    pages = {str(path.relative_to(root)) for path in (root / "docs/protocols").glob("*.md")}
    return wrong + [f"{page}: no README of a layer links to it" for page in sorted(pages - linked)]


def rooms_of_layers():
    inside = {name: set() for name in layers.BELOW}
    for path in sources():
        inside.setdefault(layer(unit_of(path)), set()).add(room(unit_of(path)))
    return inside


def write():
    listed = read()
    lines = []
    for kind, edges in graphs().items():
        known = {(one, other) for of, one, other in listed if of == kind} & edges
        found = feedback(edges) if cycles(edges - known) else needed(known, edges)
        lines += [f"{kind} {one} {other} {listed.get((kind, one, other), '')}".rstrip() for one, other in sorted(found)]
    LIST.write_text(HEAD + "\n".join(lines) + "\n")


def show():
    edges, lines = graphs(), includes()[1]
    all_units = collections.Counter(layer(unit) for unit in lines)
    for kind, of in edges.items():
        inside = collections.Counter(layer(node) for part in cycles(of) for node in part)
        print(f"{kind}s in cycles: {sum(inside.values())}, " + ", ".join(f"{name} {count}" for name, count in inside.most_common()))
    in_cycles = {node for part in cycles(edges["unit"]) for node in part}
    print(f"{len(in_cycles)} of {sum(all_units.values())} units, {sum(lines[node] for node in in_cycles)} of {sum(lines.values())} lines")
    print(f"{len(read())} known includes")


def main():
    if sys.argv[1:] == ["show"]:
        return show()
    if sys.argv[1:] == ["write"]:
        return write()
    known = {(one, other) for kind, one, other in read() if kind == "room"}
    wrong = check() + check_readmes(ROOT, rooms_of_layers(), graphs()["room"] - known)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
