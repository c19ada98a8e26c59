"""Code as HTML: C++ by a few forms of our own, so that names can be links; others by Pygments."""

import html
import re

import pygments
import pygments.formatters
import pygments.lexers

KEYWORDS = set(
    """alignas alignof and asm auto break case catch class co_await co_return co_yield
    concept const consteval constexpr constinit const_cast continue decltype default delete do
    dynamic_cast else enum explicit export extern final for friend goto if inline mutable namespace
    new noexcept nullptr operator or not override private protected public register
    reinterpret_cast requires return sizeof static static_assert static_cast struct switch template
    this thread_local throw true try false typedef typeid typename union using virtual volatile
    while""".split()
)
TYPES = set(
    """void bool char short int long float double signed unsigned wchar_t char8_t char16_t
    char32_t""".split()
)
TOKEN = re.compile(
    r"""(?P<c>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<s>R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])')"""
    r"""|(?P<cp>^[ \t]*\#[ \t]*\w+)(?P<file>[ \t]*(?:<[^>\n]*>|"[^"\n]*"))?"""
    r"""|(?P<m>\b\d[\w.]*(?:'\w+)*)"""
    r"""|(?P<name>[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*)""",
    re.S | re.M,
)
LANGUAGES = {
    "sh": "bash",
    "cmake": "cmake",
    "json": "json",
    "py": "python",
    "python": "python",
    "rust": "rust",
    "go": "go",
    "sql": "sql",
    "ini": "ini",
    "html": "html",
    "yaml": "yaml",
    "c": "c",
    "diff": "diff",
}


def span(name, text):
    return f'<span class="{name}">{html.escape(text, quote=False)}</span>'


def cpp(code, link=None):
    """`link(name)` is the address of a name, or None; `link("<header>")` that of a header."""
    made, at = [], 0
    for found in TOKEN.finditer(code):
        made.append(html.escape(code[at : found.start()], quote=False))
        made.append(token(found, link))
        at = found.end()
    return "".join(made) + html.escape(code[at:], quote=False)


def token(found, link):
    kind = (
        found.lastgroup
        if found.lastgroup not in ("mark", "file")
        else ("cp" if found.group("cp") else "s")
    )
    text = found.group()
    if kind == "cp":
        file = found.group("file") or ""
        target = link(file.strip()) if link and file else None
        shown = span("s", file) if file else ""
        return span("cp", found.group("cp")) + (
            f'<a href="{target}">{shown}</a>' if target else shown
        )
    if kind != "name":
        return span(kind, text)
    if text in KEYWORDS:
        return span("k", text)
    if text in TYPES:
        return span("kt", text)
    target = link(text) if link else None
    return f'<a href="{target}">{html.escape(text)}</a>' if target else html.escape(text)


def other(code, language):
    """Code of another language, or None for one that is not known."""
    if language not in LANGUAGES:
        return None
    lexer = pygments.lexers.get_lexer_by_name(LANGUAGES[language], stripnl=False)
    return pygments.highlight(code, lexer, pygments.formatters.HtmlFormatter(nowrap=True))


def code(text, language, link=None):
    """The text in any language, escaped."""
    if language in ("cpp", "c++", "hpp", "h"):
        return cpp(text, link)
    return other(text, language) or html.escape(text, quote=False)
