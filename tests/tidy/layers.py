"""The layer rule: a folder is a layer, and includes point down only."""

import re

# Which layers a layer stands on directly; what those stand on is included. Changing this table is a
# change of design: the table in docs/architecture.md follows it (ways.py).
BELOW = {
    "base": [],
    "reflect": [],
    "observe": ["base"],
    "memory": ["base"],
    "context": ["memory", "observe"],
    "sched": ["memory", "observe"],
    "task": ["sched"],
    "sync": ["task"],
    "actor": ["task", "context"],
    "log": ["actor"],
    "io": ["task"],
    "streams": ["io", "actor", "sync"],
    "jobs": ["task"],
    "runtime": ["log", "io", "jobs", "sync"],
    "parallel": ["context", "runtime"],
    "protocol": ["io", "parallel"],
    "kit": ["runtime"],
    "asio": ["runtime"],
    "json": ["reflect", "base"],
    "database": ["task", "reflect"],
    "durable": ["sqlite", "cron"],
    "sqlite": ["database", "kit"],
    "postgres": ["database", "kit"],
    "durable_postgres": ["durable", "postgres"],
    "cron": ["kit"],
    "dns": ["io", "runtime"],
    "tls": ["io", "runtime"],
    "nats": ["dns", "tls", "json", "kit"],
    "cluster": ["durable_postgres", "nats"],
    "http": ["dns", "tls", "protocol", "json", "kit"],
    "otlp": ["http"],
    "observe_page": ["http"],
}

# Components with a library of their own: a program includes what it uses of them, beside troupe.hpp.
APART = {"reflect", "log", "asio", "json", "database", "durable", "sqlite", "postgres", "durable_postgres", "cron", "dns", "tls", "nats", "cluster", "http", "otlp", "observe_page"}

# What CMake and pkg-config know by its name: a header of the name includes all of it.
COMPONENTS = sorted(APART - {"reflect", "log", "database"})

# Headers that include others, for users alone.
CORE_UMBRELLAS = ("troupe/troupe.hpp", "troupe/actors.hpp")
UMBRELLAS = CORE_UMBRELLAS + tuple(f"troupe/{name}.hpp" for name in COMPONENTS)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def visible(layer):
    """The layers whose headers a file of `layer` may include."""
    seen = {layer}
    for lower in BELOW[layer]:
        seen |= visible(lower)
    return seen


def place(path):
    """(layer, whether it is public) of a file in include/troupe/ or src/; the layer is None at the top."""
    parts = path.parts
    if parts[0] == "include":
        return (parts[2] if len(parts) > 3 else None), True
    return (parts[1] if len(parts) > 2 else None), False


def includes(tree, path):
    """(line number, form, header) for each include of a file; the form is `<` or `\"`."""
    for number, line in enumerate(tree.lines(path), 1):
        if found := INCLUDE.match(line):
            yield number, found.group(1), found.group(2)


def check_layers(tree):
    problems = []
    for path in tree.files("include", "src", suffixes=(".hpp", ".h", ".cpp")):
        layer, public = place(path)
        if str(path.relative_to("include") if path.parts[0] == "include" else path) in UMBRELLAS:
            continue
        if layer not in BELOW:
            problems.append(f"{path}: lies in no layer; the layers are {', '.join(BELOW)}")
            continue
        for number, form, header in includes(tree, path):
            parts = header.split("/")
            ours = parts[0] == "troupe"
            lower = parts[1] if ours and len(parts) > 2 else parts[0]
            if header in UMBRELLAS:
                problems.append(f"{path}:{number}: includes the lot; include what is used")
            elif lower in BELOW and len(parts) > 1 and (ours or form == '"'):
                if public and not ours:
                    problems.append(f"{path}:{number}: a public header includes the private {header}")
                if lower not in visible(layer):
                    problems.append(f"{path}:{number}: {layer} is not above {lower}, and includes {header}")
            elif form == '"' and parts[0] != "support":
                problems.append(f"{path}:{number}: include {header} by its full path")
    return problems + check_header_folders(tree)


# Lists the folders of public headers, whose lines no wait names (line_in_use).
WAITS = "src/actor/state/awaited.cpp"


def check_header_folders(tree):
    if WAITS not in map(str, tree.files("src", suffixes=(".cpp",))):
        return []
    listed = re.search(r"header_folders\[\] = \{(.*?)\}", "\n".join(tree.lines(WAITS)), re.DOTALL)
    known = set(re.findall(r'"(\w+)"', listed[1])) if listed else set()
    there = {path.parts[2] for path in tree.files("include", suffixes=(".hpp",)) if len(path.parts) > 3}
    return [f"{WAITS}: header_folders {'lacks' if name in there else 'has'} {name}" for name in sorted(known ^ there)]


def check_umbrella(tree):
    """troupe.hpp reaches every public C++ header, but for the components apart, which have their own."""
    headers = {str(p.relative_to("include")): p for p in tree.files("include", suffixes=(".hpp",))}
    apart = {name for name, path in headers.items() if place(path)[0] in APART}
    core = set(headers) - apart - (set(UMBRELLAS) - set(CORE_UMBRELLAS))
    problems = unreached(tree, "troupe/troupe.hpp", core, headers) if core else []
    for component in COMPONENTS:
        inside = {name for name in headers if name.startswith(f"troupe/{component}/")}
        problems += unreached(tree, f"troupe/{component}.hpp", inside, headers) if inside else []
    return problems


def unreached(tree, top, wanted, headers):
    """What is wrong with a header that shall include all of these."""
    if top not in headers:
        return [f"include/{top}: is missing"]
    reached, waiting = {top}, [top]
    while waiting:
        for _, _, header in includes(tree, headers[waiting.pop()]):
            if header in headers and header not in reached:
                reached.add(header)
                waiting.append(header)
    lost = sorted(wanted - reached)
    return [f"{headers[name]}: include/{top} does not reach it" for name in lost]


def public_types(lines):
    """(line number, name) of each class defined in namespace troupe itself, which is what users name."""
    spaces = []
    for number, line in enumerate(lines, 1):
        if opened := re.match(r"namespace ([\w:]+) \{(?!.*\})", line):
            spaces.append(opened.group(1))
        elif re.match(r"\}\s*// namespace", line) and spaces:
            spaces.pop()
        elif spaces == ["troupe"] and (found := re.match(r"(?:class|struct) (\w+)(?![\w<])(?!.*;\s*(//.*)?$)", line)):
            yield number, found.group(1)


def check_examples(tree):
    """A public header that defines a type for users shows its use; tests/docs/ compiles the example."""
    problems = []
    for path in tree.files("include", suffixes=(".hpp",)):
        lines = tree.lines(path)
        types = list(public_types(lines))
        if types and not any(re.fullmatch(r"\s*//+ Example( \(declarations\))?:", line) for line in lines):
            number, name = types[0]
            problems.append(f"{path}:{number}: {name} has no example (`// Example:`)")
    return problems
