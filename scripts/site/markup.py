"""HTML, an element at a time."""

import html


def text(words):
    return html.escape(words, quote=False)


def element(tag, *inner, **attributes):
    """An element of these parts, which are HTML.

    `kind` is its class; an attribute that is None is left out.
    """
    named = ((name.replace("_", "-"), value) for name, value in attributes.items())
    shown = "".join(
        f' {"class" if name == "kind" else name}="{html.escape(str(value))}"'
        for name, value in named
        if value is not None
    )
    return f"<{tag}{shown}>{''.join(inner)}</{tag}>"


def link(url, *inner, **attributes):
    return element("a", *inner, href=url, **attributes)


def code(words):
    return element("code", text(words))


def block(kind, inner):
    """Code on lines of its own."""
    return element("pre", element("code", inner), kind=kind)


def table(rows, kind=None, head=()):
    """A table of cells that are HTML, in a frame that can be moved when it is too wide."""
    heads = element("tr", *(element("th", cell) for cell in head))
    lines = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    parts = [element("thead", heads)] if head else []
    return element(
        "div", element("table", *parts, element("tbody", *lines), kind=kind), kind="wide"
    )


def card(url, title, line):
    return link(url, element("b", text(title)), element("span", text(line)), kind="card")


def items(inner):
    return element("ul", *(element("li", one) for one in inner))
