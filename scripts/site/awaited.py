"""What `co_await` gives for a function that returns an awaitable type of the library's own.

A declaration such as `io::awaitable<io::connect_job> connect(…)` does not say it: the class of the
job does, by its alias `result`, or by the type that its `finish()` returns.
"""

import re

import _declarations
import _headers

AWAITABLES = {"io::awaitable", "sync::awaiting", "tasks::limited_task"}
SPACES = ("io", "sync", "tasks", "kit")
RETURNED = re.compile(
    r"(?:\[\[.*?\]\]\s*)?(?:(?:static|inline|constexpr|virtual|explicit|const)\s+)*(?P<type>.+?)\s*"
    r"(?<![\w:~])(?P<name>\w+)\(",
    re.S,
)
DEPTH_MAX = 4  # of aliases


class Awaited:
    def __init__(self, headers):
        self.known = {}
        for header in headers:
            self._collect(header.declarations, [])

    def _collect(self, declarations, above):
        for made in declarations:
            spaces = above + (made.name.split("::") if made.name else [])
            full = "::".join(spaces).removeprefix("troupe::")
            if made.kind in ("class", "alias"):
                self.known.setdefault(full, made)
            if made.kind in ("class", "namespace"):
                self._collect(made.members, spaces)

    def given(self, made, scope):
        """The type that awaiting a call of this function gives, if its own type does not say so."""
        found = RETURNED.match(without_template(made.text))
        type_of = self.of_type(found.group("type"), scope, DEPTH_MAX) if found else None
        return type_of and type_of.removeprefix("typename ")

    def of_type(self, text, scope, depth):
        name, arguments = parted(text)
        alias = self._find(name, scope)
        if alias is not None and alias.kind == "alias" and depth > 0:
            target = alias.text.split("=", 1)[1].strip(" \n;")
            target = replaced(_headers.words(target), alias.text, arguments)
            return self.of_type(target, scope, depth - 1)
        is_ours = any(name in (whole, whole.split("::")[1]) for whole in AWAITABLES)
        return self._result(arguments[0], scope) if is_ours and arguments else None

    def _result(self, job, scope):
        name, arguments = parted(job)
        made = self._find(name, scope)
        if made is None or made.kind != "class":
            return None
        for member in made.members:
            if member.kind == "alias" and member.name == "result":
                return replaced(member.text.split("=", 1)[1].strip(" \n;"), made.text, arguments)
        for member in made.members:
            if member.kind == "function" and member.name == "finish":
                returned = RETURNED.match(without_template(member.text)).group("type")
                return None if "auto" in returned else replaced(returned, made.text, arguments)
        return None

    def _find(self, name, scope):
        parts = scope.split("::") if scope else []
        for end in range(len(parts), -1, -1):
            within = "::".join([*parts[:end], name])
            if within in self.known:
                return self.known[within]
        return next(filter(None, (self.known.get(f"{space}::{name}") for space in SPACES)), None)


def without_template(text):
    return text[_declarations.template_end(text, 0) :].lstrip()


def parted(text):
    """The name of a type, and its template arguments."""
    name, _, rest = text.partition("<")
    inner = rest.rstrip().removesuffix(">")
    return name.strip(), [_headers.words(one) for one in _headers.pieces(inner)] if rest else []


def replaced(text, declared, arguments):
    """The type with the template arguments in place of the parameters that `declared` names."""
    end = _declarations.template_end(declared, 0)
    parameters = _headers.pieces(declared[:end].partition("<")[2].rstrip().removesuffix(">"))
    names = [re.split(r"=", one)[0].split()[-1].lstrip(".") for one in parameters if one.strip()]
    for name, argument in zip(names, arguments):
        text = re.sub(rf"\b{re.escape(name)}\b", lambda _: argument, text)
    return text
