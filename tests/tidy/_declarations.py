"""Reads what a public header declares: each declaration with its comment.

A comment on lines of its own belongs to the declaration below it, a comment at the end of a line to
the declaration before it. Declarations without a blank line between them share
the comment above them, as they do for a reader of the header.
"""

import bisect
import dataclasses
import re

import _headers

# Left to right, so that slashes in a literal are no comment, and quotes in a comment no literal.
HIDDEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<literal>R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')"""
    r"""|(?P<line>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)""",
    re.S | re.M,
)
ACCESS = re.compile(r"(public|private|protected)\s*:(?!:)")
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)\s*$")
ATTRIBUTES = re.compile(
    r"\[\[[^\]]*\]\]|\balignas\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|\bTROUPE_[A-Z_]+\b(?:\([^()]*\))?"
)
# A specialization for all signatures, as of `f<Result(Args...)>`, stands for the template, which is
# only declared.
TYPE = re.compile(
    r"\b(enum\s+(?:class|struct)|enum|class|struct|union)\s+([\w:]+)\s*"
    r"(?:<\w+\(\w+\.\.\.\)>)?(<[^{}()=]*>)?\s*"
    r"(?:final\s*)?(:[^:].*|:)?$",
    re.S,
)
# A macro that stands for a declaration, on lines of its own.
MACRO = re.compile(r"TROUPE_[A-Z_]+\([^;{}]*?\)[ \t]*\n")
OPERATOR = re.compile(
    r"\boperator\s*(\(\s*\)|\[\s*\]|<=>|\"\"\s*\w+|co_await\b|[^\s\w(]+|[\w:<>&* ]+?)\s*\("
)
NO_NAME = {
    "requires",
    "noexcept",
    "decltype",
    "explicit",
    "alignas",
    "sizeof",
    "operator",
    "if",
    "throw",
}
NO_VALUE = {"const", "noexcept", "override", "final", "mutable", "volatile"}
INITIALIZER_LINES_MAX = 3


@dataclasses.dataclass
class Declaration:
    kind: str  # namespace, class, enum, enumerator, function, value, alias or concept
    names: list  # one, but of values that are declared together
    text: str  # as it is shown
    line: int
    comment: list = dataclasses.field(default_factory=list)  # its lines, without slashes
    shares: bool = False  # follows the declaration before it without a blank line
    is_behind: bool = False  # the comment is at the end of its line
    bases: list = dataclasses.field(default_factory=list)
    members: list = dataclasses.field(default_factory=list)
    has_body: bool = False

    @property
    def name(self):
        return self.names[0] if self.names else ""


def head_comment(text):
    """The paragraphs at the top of a header, as lines."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return lines


def read(text):
    """The declarations of the header's text, as a tree of namespaces."""
    return Reader(text).scope(0, len(text), True)[0]


def angle_end(plain, at):
    """The place behind the `>` that closes the `<` at `at`."""
    depth = round_depth = 0
    for here in range(at, len(plain)):
        letter = plain[here]
        round_depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "<" and round_depth == 0:
            depth += 1
        elif letter == ">" and round_depth == 0 and plain[here - 1] != "-":
            depth -= 1
            if depth == 0:
                return here + 1
    return len(plain)


def template_end(plain, at):
    """The place behind `template <…>`, as often as it occurs."""
    while found := re.compile(r"\s*template\s*(?=<)").match(plain, at):
        at = angle_end(plain, found.end())
    return at


class Reader:
    def __init__(self, text):
        self.lines = text.split("\n")
        self.begins = [0]
        for line in self.lines:
            self.begins.append(self.begins[-1] + len(line) + 1)
        # Blanks in place of comments, literals and preprocessor lines; and of comments alone.
        self.plain = HIDDEN.sub(lambda found: blank(found.group()), text)
        self.shown = HIDDEN.sub(
            lambda found: found.group() if found.group("literal") else blank(found.group()), text
        )

    def line_of(self, at):
        return bisect.bisect_right(self.begins, at) - 1

    def scope(self, at, end, public):
        """The declarations from `at` to the brace that ends the scope, and the place of that."""
        found, last = [], self.line_of(at)
        while True:
            at = self.skip_blanks(at, end)
            if at >= end or self.plain[at] == "}":
                return found, at
            if self.plain[at] == ";":
                at += 1
                continue
            if access := ACCESS.match(self.plain, at):
                public, at = access.group(1) == "public", access.end()
                last = self.line_of(at)
                continue
            if macro := MACRO.match(self.plain, at):
                at = macro.end()
                continue
            made, after = self.declaration(at, end)
            if made and public:
                self.add_comment(made, at, after, last)
                found.append(made)
            at, last = after, self.line_of(after - 1)

    def skip_blanks(self, at, end):
        while at < end and self.plain[at].isspace():
            at += 1
        return at

    def add_comment(self, made, at, after, last):
        """The comment above it, or else the one behind it."""
        line = self.line_of(at)
        made.line = line + 1
        column = len(self.lines[line]) - len(self.lines[line].lstrip())
        top = line
        while top - 1 > last and self.lines[top - 1].startswith(" " * column + "//"):
            top -= 1
        made.comment = [text.strip()[2:].removeprefix(" ") for text in self.lines[top:line]]
        made.shares = top - 1 == last and line != last and not made.comment
        behind = self.line_of(after - 1)
        trailing = re.match(r"[ \t;,]*//+ ?(.*)", self.lines[behind][after - self.begins[behind] :])
        if trailing and not made.comment:
            made.comment, made.is_behind = [trailing.group(1)], True
            made.shares = False
            column = len(self.lines[behind]) - len(trailing.group(0).lstrip(" \t;,"))
            while (
                behind + 1 < len(self.lines)
                and re.match(rf" {{{column}}}//", self.lines[behind + 1])
                and column > 8
            ):
                behind += 1
                made.comment.append(self.lines[behind].strip()[2:].strip())

    def declaration(self, at, end):
        """The declaration at `at`, or None for one that has no entry, and the place behind it."""
        here, depth, assigned, initializers = template_end(self.plain, at), 0, None, None
        while here < end:
            letter = self.plain[here]
            if letter in "([":
                depth += 1
            elif letter in ")]":
                depth -= 1
            elif depth == 0 and letter == ";":
                return self.made(at, here, assigned, initializers), here + 1
            elif depth == 0 and letter == "}":
                return None, here
            elif depth == 0 and letter == "=" and assigned is None and self.assigns(here):
                assigned = here
            elif (
                depth == 0
                and letter == ":"
                and initializers is None
                and self.begins_initializers(at, here)
            ):
                initializers = here
            elif depth == 0 and letter == "{":
                opened = self.opened(at, here, assigned, initializers)
                close = _headers.closing(self.plain, here, "{}")
                if opened == "value":
                    here = close
                elif opened == "function":
                    return self.made(at, here, assigned, initializers, True), close + 1
                else:
                    return self.made_scope(at, here, close), close + 1
            here += 1
        return None, end

    def assigns(self, here):
        around = self.plain[here - 1], self.plain[here + 1]
        return (
            around[0] not in "=!<>+-*/%&|^"
            and around[1] != "="
            and not re.search(r"operator\s*$", self.plain[max(0, here - 10) : here])
        )

    def begins_initializers(self, at, here):
        """A colon behind the parameters of a constructor."""
        if ":" in (self.plain[here - 1], self.plain[here + 1]):
            return False
        return not self.type_of(at, here) and "(" in self.plain[template_end(self.plain, at) : here]

    def type_of(self, at, here):
        return TYPE.search(
            ATTRIBUTES.sub(" ", self.plain[template_end(self.plain, at) : here]).rstrip()
        )

    def opened(self, at, here, assigned, initializers):
        """What a brace opens: a scope, the body of a function, or a value."""
        head = self.plain[at:here].rstrip()
        if NAMESPACE.match(head) or (
            assigned is None and initializers is None and self.type_of(at, here)
        ):
            return "scope"
        if assigned is not None or re.search(
            r"\brequires$|\b(requires|&&|\|\|)\s+requires\s*\([^{}]*\)$", head
        ):
            return "value"
        word = re.search(r"(\w+|.)$", head).group(1)
        if initializers is not None:
            return "function" if word in ")}" else "value"
        is_name = (
            re.fullmatch(r"\w+", word)
            and word not in NO_VALUE
            and "->" not in head
            and not re.search(r"\)[\w\s&]*\brequires\b", head)
        )
        return "value" if is_name or word == "]" else "function"

    def made_scope(self, at, here, close):
        head = self.plain[at:here].rstrip()
        if space := NAMESPACE.match(head):
            return Declaration(
                "namespace",
                [space.group(1) or "unnamed"],
                "",
                0,
                members=self.scope(here + 1, close, True)[0],
            )
        found = self.type_of(at, here)
        word, name = found.group(1), found.group(2)
        if "::" in name or found.group(3) or re.match(r"\s*friend\b", head):
            return None  # a specialization, or one of a class within another
        if word.startswith("enum"):
            return Declaration(
                "enum",
                [name],
                laid_out(self.shown[at:here]),
                0,
                members=self.enumerators(here + 1, close),
                has_body=True,
            )
        bases = [
            base
            for base in _headers.pieces((found.group(4) or "")[1:])
            if not re.search(r"\b(private|protected)\b", base)
        ]
        if word == "class":
            bases = [base for base in bases if re.search(r"\bpublic\b", base)]
        bases = [
            _headers.words(re.sub(r"\b(public|virtual)\b", "", base))
            for base in bases
            if base.strip()
        ]
        text = laid_out(self.shown[at:here])
        if found.group(4):
            text = re.sub(r"\s*(?<!:):(?!:)[^:].*$", "", text, flags=re.S) + (
                " : " + ", ".join("public " + base for base in bases) if bases else ""
            )
        members, _ = self.scope(here + 1, close, word != "class")
        return Declaration("class", [name], text, 0, bases=bases, members=members, has_body=True)

    def enumerators(self, at, close):
        found, last = [], self.line_of(at)
        for piece in _headers.pieces(self.plain[at:close]):
            begin = self.skip_blanks(at, close)
            at += len(piece) + 1
            name = re.match(r"\w+", self.plain[begin:close])
            if name and begin < close:
                made = Declaration(
                    "enumerator", [name.group()], _headers.words(self.shown[begin : at - 1]), 0
                )
                self.add_comment(
                    made, begin, begin + len(self.plain[begin : at - 1].rstrip()), last
                )
                found.append(made)
                last = self.line_of(begin + len(self.plain[begin : at - 1].rstrip()))
        return found

    def made(self, at, here, assigned, initializers, has_body=False):
        """A declaration that opens no scope."""
        head = self.plain[template_end(self.plain, at) : here]
        word = re.match(r"\s*(\w+)", ATTRIBUTES.sub(" ", head))
        word = word.group(1) if word else ""
        if (
            word in ("friend", "static_assert", "typedef", "template")
            or re.match(r"\s*extern\s+template\b", head)
            or re.match(r"\s*using\s+(namespace\b|enum\b|[\w:<>, ]+$)", head)
        ):
            return None
        if alias := re.search(r"\b(using|concept)\s+(\w+)\s*=", head):
            kind = "alias" if alias.group(1) == "using" else "concept"
            return Declaration(
                kind, [alias.group(2)], as_written(self.shown[at:here], self.column(at)) + ";", 0
            )
        is_forward = re.match(r"\s*(?:class|struct|union|enum)\b[^=(]*$", ATTRIBUTES.sub(" ", head))
        if is_forward:
            return None
        behind = self.plain[assigned:here] if assigned is not None else ""
        text = self.shown[at : initializers if initializers is not None else here]
        plain_head = self.plain[
            template_end(self.plain, at) : assigned if assigned is not None else here
        ]
        plain_head = re.sub(r"\{[^{}]*\}", lambda found: blank(found.group()), plain_head)
        name = function_name(ATTRIBUTES.sub(lambda found: blank(found.group()), plain_head))
        if name and not (
            assigned is not None and not re.match(r"=\s*(default|delete|0)\s*$", behind)
        ):
            return (
                None
                if "::" in name
                else Declaration("function", [name], laid_out(text) + ";", 0, has_body=has_body)
            )
        return self.made_value(at, here, assigned)

    def made_value(self, at, here, assigned):
        names = []
        for piece in _headers.pieces(
            without_angles(self.plain[template_end(self.plain, at) : here])
        ):
            name = re.search(
                r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", re.split(r"(?<![=!<>])=(?!=)|\{", piece)[0].rstrip()
            )
            if name:
                names.append(name.group(1))
        text = self.shown[at:here]
        if text.count("\n") >= INITIALIZER_LINES_MAX and assigned is not None:
            text = self.shown[at:assigned] + "= …"
        is_specialization = self.plain[at : assigned or here].rstrip().endswith(">")
        return (
            Declaration("value", names, laid_out(text) + ";", 0)
            if names and not is_specialization
            else None
        )

    def column(self, at):
        return at - self.begins[self.line_of(at)]


def blank(text):
    """Blanks in place of the text, in as many lines."""
    return re.sub(r"[^\n]", " ", text)


def without_angles(text):
    """Blanks in place of what lies in angle brackets, so that a comma there parts nothing."""
    made, at = "", 0
    for found in re.finditer(r"(?<=\w)<", text):
        if found.start() >= at:
            end = angle_end(text, found.start())
            made += text[at : found.start()] + " " * (end - found.start())
            at = end
    return made + text[at:]


def function_name(head):
    """The name in front of the parameters, or None; with `::` if its class is named as well."""
    if operator := OPERATOR.search(head):
        return (
            "operator"
            + re.sub(
                r"\s+",
                " ",
                " " + operator.group(1) if operator.group(1)[0].isalpha() else operator.group(1),
            ).rstrip()
        )
    at = 0
    flat = without_angles(head)
    while found := re.compile(r"((?:\w+\s*::\s*)*~?\w+)\s*\(").search(flat, at):
        if found.group(1) not in NO_NAME:
            qualified = re.search(r"::\s*$", flat[: found.start(1)])
            return "::" + found.group(1) if qualified else found.group(1)
        at = _headers.closing(flat, found.end() - 1) + 1
    return None


COLUMNS = 84


def as_written(text, column):
    """The lines of the source, without the indentation of the scope."""
    text = re.sub(r"\bTROUPE_[A-Z_]+\b(\([^()]*\))?[ \t]*", "", text)
    lines = [line.rstrip().removeprefix(" " * column) for line in text.split("\n")]
    return "\n".join(line for line in lines if line).strip()


def laid_out(text):
    """The declaration as it is shown, with `template` and `requires` on lines of their own."""
    text = _headers.words(re.sub(r"\bTROUPE_[A-Z_]+\b(\([^()]*\))?", "", text))
    lines, at = [], 0
    while True:
        end = template_end(text, at)
        if end == at:
            break
        lines.append(text[at:end].strip())
        at = end
    rest = text[at:].strip()
    if rest.startswith("requires"):
        end = constraint_end(rest)
        clause = rest[:end].strip()
        if len(clause) > COLUMNS:
            clause = re.sub(r" (&&|\|\|) ", r" \1\n    ", clause)
        lines.append(clause)
        rest = rest[end:].strip()
    attribute = re.match(r"\[\[.*?\]\]", rest)
    if attribute and len(rest) > COLUMNS:
        lines.append(attribute.group())
        rest = rest[attribute.end() :].strip()
    return "\n".join(lines + wrapped(rest))


def constraint_end(text):
    """The place behind a `requires` clause, whose operands are joined by `&&` and `||`."""
    at = len("requires")
    while True:
        at = operand_end(text, at)
        joined = re.compile(r"\s*(?:&&|\|\|)(?=\s)").match(text, at)
        if not joined:
            return at
        at = joined.end()


def operand_end(text, at):
    """The place behind `(…)`, `requires(…) {…}` or `a::b<…>`."""
    begin = re.compile(r"\s*!?(requires\b)?\s*").match(text, at)
    at = begin.end()
    if text[at : at + 1] == "(":
        at = _headers.closing(text, at) + 1
        if not begin.group(1):
            return at
    if begin.group(1):
        return _headers.closing(text, text.index("{", at), "{}") + 1
    while name := re.compile(r"(?:::)?\w+").match(text, at):
        at = name.end()
        if text[at : at + 1] == "<":
            at = angle_end(text, at)
    return at


def wrapped(text):
    """A declaration of one line, or with its parameters below each other."""
    if len(text) <= COLUMNS:
        return [text]
    flat = without_angles(text)
    found = next(
        (
            found
            for found in re.finditer(r"~?\w+\s*\(", flat)
            if found.group().rstrip("( ") not in NO_NAME
        ),
        None,
    )
    if not found:
        return [text]
    open_at = found.end() - 1
    close = _headers.closing(flat, open_at)
    pieces = [piece.strip() for piece in _headers.pieces(text[open_at + 1 : close])]
    if not any(pieces):
        return [text]
    return [
        text[: open_at + 1],
        *[f"    {piece}{',' if piece is not pieces[-1] else text[close:]}" for piece in pieces],
    ]
