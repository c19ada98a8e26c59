"""What a coroutine can await, and the table of what each loses: the types in the public headers that can be awaited, and the public
functions that return one.

Usage: waits.py list      prints the types with an `await_resume`, the operations behind them, and the functions
       waits.py check     compares them with waits.txt, the guide and the tests; and checks that it finds what is planted
       waits.py guide     writes the guide's table from waits.txt
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tidy"))
import _headers
TABLE = pathlib.Path(__file__).with_name("waits.txt")
GUIDE = ROOT / "docs/guide/tasks.md"
BEGIN, END = "<!-- made from tests/given_up/waits.txt -->", "<!-- end -->"
MEMBER = re.compile(r"\b(?:await_resume|withdraw|operator\s+co_await)\s*\(|\busing\s[^;=]*::\s*await_resume\b|"
                    r"\bstatic\s+constexpr\s+(?:io::)?action\s+opcode\s*=")
# What stands before a call, where the name of a function that is declared has its type.
CALL = re.compile(r"(?:[;{}.!?:,(=+|-]|->|\b(?:return|co_return|co_await|co_yield|throw|else|do|case|and|or|not))$")
CONDITION = re.compile(r"\b(?:if|while|for|switch|constexpr)\s*$")
# Namespaces of the library's own. What lies in `parts` may be a base of what users have.
INTERNAL = _headers.INTERNAL - {"parts"}
CLASS = re.compile(r"(?<!\benum )(?<!\bfriend )\b(class|struct|union|namespace)\b\s*(?:[A-Z][A-Z0-9_]+\s+)*(?=[A-Za-z_])")
AWAITED = re.compile(r"\bawait_resume\b|\boperator\s+co_await\b")
# Templates that are one of their arguments.
CHOOSING = {"conditional_t", "type_identity_t", "remove_cvref_t", "enable_if_t", "conditional"}
FIRST_NAME = re.compile(r"\s*(?:(?:typename|public|protected|private|virtual|const)\s+)*(?:\w+::)*(\w+)")


def class_of(head):
    """What a brace opens, by the text before it: (kind, name, bases), or None for code and values."""
    head = without_templates(re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", head))
    head = re.sub(r"\balignas\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|(?<=\s)[A-Z][A-Z0-9_]+\s*\([^()]*\)", "", head)
    found = CLASS.search(_headers.words(head))
    if found is None:
        return None
    head = _headers.words(head)
    at = found.end()
    while (more := re.match(r"(?:::)?\w+", head[at:])) is not None:
        at += more.end()
        if head[at : at + 1] == "<":
            at = _headers.closing(head, at, "<>") + 1
        if head[at : at + 2] != "::":
            break
    rest = re.fullmatch(r"\s*(?:final)?\s*(?::(?!:)(.*))?", head[at:])
    return (found.group(1), head[found.end() : at], rest.group(1) or "") if rest else None


def is_declared(text, at):
    """Whether a function is declared at the name there, and not called."""
    before = text[:at].rstrip()
    if not before.endswith(")"):
        return CALL.search(before[-12:]) is None
    opens = len(before) - 1 - _headers.closing(before[::-1], 0, ")(")
    return CONDITION.search(before[:opens]) is None


def operand(text, at):
    """The type of the first parameter, whose bracket is there; empty for none."""
    first = _headers.pieces(text[at + 1 : _headers.closing(text, at)])[0]
    names = re.findall(r"(?:\w+::)*(\w+)", re.sub(r"<.*", "", re.sub(r"\b(?:const|volatile|typename|void)\b", "", first)))
    return names[0] if names else ""


def types_in(text):
    """Returns the qualified names of the types that have such a member, or an operator beside them; outermost first."""
    text = _headers.plain(text)
    members = {match.start(): match.group() for match in MEMBER.finditer(text)}
    found, scopes, begin = [], [], 0
    for at, letter in enumerate(text):
        if at in members and (names := member_of(text, at, members[at], scopes)) and names not in found:
            found.append(names)
        if letter == "{":
            scopes.append(class_of(text[begin:at]) or ("", "", ""))
        elif letter == "}" and scopes:
            scopes.pop()
        if letter in "{};":
            begin = at + 1
    return found


def member_of(text, at, match, scopes):
    """The type that has the member, by its name; empty if it is none."""
    names = [name for kind, name, _ in scopes if kind not in ("", "namespace")]
    if match.endswith("("):
        if not is_declared(text, at):
            return ""
        if match.startswith("withdraw") and not re.search(r"\bbool\s*$", text[:at]):
            return ""
        of = operand(text, at + len(match) - 1)
        if of and match.startswith("operator"):
            return "::".join(names if names and re.match(rf"{of}\b", names[-1]) else [of])
        if of and not match.startswith("await"):
            return ""
    return "::".join(names)


def all_types():
    include = _headers.INCLUDE / "troupe"
    return {f"{header.relative_to(include)} {name}"
            for header in sorted(include.rglob("*.hpp")) for name in types_in(header.read_text())}


def first_name(text):
    found = FIRST_NAME.match(text)
    return found.group(1) if found else ""


def stands_for(text):
    """The names one of which an alias may stand for."""
    first = first_name(text)
    return set(re.findall(r"\w+", text)) if first in CHOOSING else {first}


def awaitable_names(texts):
    """The names of all classes and aliases that can be awaited: by a member, of theirs or of a base, an operator, or what they stand for."""
    names, behind = {"task", "lazy", "async_generator"}, []
    for text in texts:
        names |= {re.sub(r"<.*", "", name.split("::")[-1]) for name in types_in(text) if re.search(AWAITED, text)}
        begin = 0
        for match in re.finditer(r"[{};]", text):
            one = class_of(text[begin : match.start()]) if match.group() == "{" else None
            if one is not None and one[0] != "namespace":
                name = re.sub(r"<.*", "", one[1].split("::")[-1])
                behind.append((name, {first_name(base) for base in _headers.pieces(one[2])}))
            begin = match.end()
        behind += [(name, stands_for(of)) for name, of in re.findall(r"\busing\s+(\w+)\s*=([^;]*);", text)]
        behind += [(name, stands_for(of)) for of, name in re.findall(r"\btypedef\s+([^;]*?)\s*\b(\w+)\s*;", text)]
    while True:
        more = {name for name, others in behind if others & names} - names
        if not more:
            return names
        names |= more


def without_templates(text):
    """Without `template <…>`, `requires (…)` and attributes."""
    while (match := re.search(r"\btemplate\s*<", text)) is not None:
        text = text[: match.start()] + text[_headers.closing(text, match.end() - 1, "<>") + 1 :]
    while (match := re.search(r"\brequires\s*\(", text)) is not None:
        text = text[: match.start()] + text[_headers.closing(text, match.end() - 1) + 1 :]
    return re.sub(r"\[\[.*?\]\]", "", text)


def all_functions():
    """The public functions that return what can be awaited, or what only their code says (`auto`)."""
    include = _headers.INCLUDE / "troupe"
    names = awaitable_names([_headers.plain(header.read_text()) for header in sorted(include.rglob("*.h*"))])

    def gives(before, behind):
        before = without_templates(before)
        is_other = re.search(r"(?<!:):(?!:)|\b(?:consteval|explicit|concept|operator|using)\b|(?<![=!<>])=(?!=)|::$", before)
        is_other = is_other or (re.search(r"\bfriend\b", before) and not behind.endswith("{"))
        arrow = re.search(r"->\s*(.*)", behind)
        result = arrow.group(1) if arrow and re.search(r"\bauto\b", before) else before
        result = result.rstrip()
        if is_other or not result or re.search(r"(?<!&)&$|\*$", result):
            return False
        return bool(set(re.findall(r"\w+", result)) & (names | {"auto"}))

    found = _headers.all_entries(_headers.NOTHING, _headers.NOTHING, internal=INTERNAL, result=gives)
    for header in sorted(include.rglob("*.h*")):
        for name in re.findall(r"\boperator\s+(?:\w+::)*(\w+)", _headers.plain(header.read_text())):
            if name in names:
                found.append(f"{header.relative_to(include)} operator {name}()")
    return {entry for entry in found if not re.search(r"[ :](?:operator\s*(?:[<=>]+)?|await_\w+|requires|\w+_)\(\)$", entry)}


# Headers with an awaitable, or a function that gives one, in each spelling; and what the walk must find there.
PLANTED = {
    "struct a { int await_resume() noexcept(noexcept(f(x))) { return 1; } };": "a",
    "struct a { auto await_resume() const & -> std::pair<int, decltype(f())>; };": "a",
    "struct a { constexpr auto await_resume() && noexcept -> T { return {}; } };": "a",
    "class a { public: TROUPE_INLINE decltype(auto) await_resume(); };": "a",
    "class a { public: TROUPE_ALWAYS(1) void await_resume() const requires(is_void<T>) {} };": "a",
    "struct a { [[nodiscard]] std::optional<T> await_resume(void); };": "a",
    "struct a { decltype(f()) await_resume(); };": "a",
    "struct a { template <class U = T> U await_resume(); };": "a",
    "template <class T> requires(b<T>) struct [[nodiscard(\"why\")]] a final : c<T>, d { T await_resume(); };": "a",
    "template <class T> struct alignas(sizeof(T)) a<std::vector<T>> { T await_resume(); };": "a<std::vector<T>>",
    "class TROUPE_EXPORT a { public: T await_resume(); };": "a",
    "namespace b { class c { struct a { T await_resume(); }; }; }": "c::a",
    "struct a { using b::await_resume; };": "a",
    "struct a { using b<int>::await_ready, b<int>::await_resume; };": "a",
    "struct a { auto operator co_await() const& noexcept(noexcept(f())) -> b; };": "a",
    "struct a {}; inline b operator co_await(a of) { return b(of); }": "a",
    "struct a {}; template <class T> auto operator co_await(const c::a<T>& of) noexcept -> b<T>;": "a",
    "struct a { friend b operator co_await(a&&) noexcept; };": "a",
    "struct a { bool withdraw() noexcept; };": "a",
    "struct a { void f() { if (b) x.await_resume(); return y->await_resume(); } };": "",
    "struct a { void f() { while (next()) operator co_await(x); await_resume(); } };": "",
    "struct a { struct b; void withdraw(int); enum class c { d }; };": "",
    "using later = task<int>; later a(int x);": "a()",
    "typedef task<int> later; later a(int x) noexcept(noexcept(f(x)));": "a()",
    "template <class T> using later = std::conditional_t<b, task<T>, c>; template <class T> later<T> a();": "a()",
    "using later = troupe::task<>; using last = later; struct b { last a() const; };": "b::a()",
    "struct w { T await_resume(); }; struct v : w { using w::await_resume; }; v a();": "a()",
    "struct w {}; auto operator co_await(w) -> b; auto a() -> w;": "a()",
    "struct w { T await_resume(); }; w& a(); int b(w);": "",
}


def controls():
    """Complaints about what the walk does not see in the planted headers."""
    kept = _headers.INCLUDE
    with tempfile.TemporaryDirectory() as place:
        _headers.INCLUDE = pathlib.Path(place)
        planted = pathlib.Path(place) / "troupe/planted.hpp"
        planted.parent.mkdir()
        for text, wanted in PLANTED.items():
            planted.write_text(text)
            types, functions = ({one.partition(" ")[2] for one in made} for made in (all_types(), all_functions()))
            is_function = "(" in wanted
            if wanted and wanted not in (functions if is_function else types):
                yield f"waits.py: it does not find {wanted} in: {text}"
            if not wanted and (functions or (types - {"w"})):
                yield f"waits.py: it finds {sorted(types | functions)} in: {text}"
    _headers.INCLUDE = kept


def rows():
    """Rows of the table: the wait, what is lost, its test, and the types and functions."""
    made = []
    for line in TABLE.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            entry, _, test = line.strip().partition(" = ")
            made[-1]["entries"].append((entry, test))
            continue
        wait, lost, test = (part.strip() for part in line.split("|"))
        made.append({"wait": wait, "lost": lost, "test": test, "entries": []})
    return made


def guide_table():
    lines = ["| a wait for | lost when it is given up |", "|---|---|"]
    lines += [f"| {row['wait']} | {row['lost']} |" for row in rows() if row["wait"] != "internal"]
    return "\n".join(lines)


def guide_parts():
    before, _, rest = GUIDE.read_text().partition(BEGIN)
    made, _, after = rest.partition(END)
    return before, made, after


def names_in_tests():
    """The sources of tests/given_up, by which each value of a wait is counted, and the tests beside them and of the components."""
    names = set()
    for file in sorted((ROOT / "tests").rglob("*.[ch]pp")):
        text = file.read_text()
        names |= set(re.findall(r"\bTEST(?:_P|_F)?\(\s*\w+,\s*(\w+)\)", text))
        if "given_up" in file.relative_to(ROOT).parts:
            names |= set(re.findall(r'\{"(\w+)",\s*&make_', text))
    return names


def problems():
    listed = [entry for row in rows() for entry, _ in row["entries"]]
    found = all_types() | all_functions()
    for name in sorted(found - set(listed)):
        yield f"{name}: it can be awaited, or gives what can be, and is not in {TABLE.relative_to(ROOT)}: say what is lost"
    for name in sorted(set(listed) - found):
        yield f"{name}: it is in {TABLE.relative_to(ROOT)}, and not in the headers"
    for name in sorted({one for one in listed if listed.count(one) > 1}):
        yield f"{name}: it is listed twice"
    tests = names_in_tests()
    for row in rows():
        if not any(name.startswith(row["test"]) for name in tests):
            yield f"{row['wait']}: no test or source begins with \"{row['test']}\""
        for entry, test in row["entries"]:
            if test and test not in tests:
                yield f"{entry}: there is no test or source \"{test}\""
            if not test and entry.endswith("()") and row["lost"].startswith("nothing") and row["wait"] != "internal":
                yield f"{entry}: nothing is lost with it: name the test that shows it, as `{entry} = test`"
    if guide_parts()[1].strip() != guide_table():
        yield f"{GUIDE.relative_to(ROOT)}: its table is not that of waits.txt; run waits.py guide"


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "list":
        print("\n".join(sorted(all_types() | all_functions())))
    elif what == "guide":
        before, _, after = guide_parts()
        GUIDE.write_text(f"{before}{BEGIN}\n{guide_table()}\n{END}{after}")
    elif what == "check":
        found = [*controls(), *problems()]
        print("\n".join(found))
        return 1 if found else 0
    else:
        print(__doc__)
        return 2
    return 0


sys.exit(main())
