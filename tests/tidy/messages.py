"""Lists the texts of the library's errors and warnings in messages.txt, one below the other, so that somebody can read
them. A text begins with "troupe: ". What a program inserts stands in braces; of alternatives all are listed: {a|b}.

messages.py          fails if the list is stale, or if a text holds a phrase that words.py counts
messages.py update   writes the list
"""

import pathlib
import re
import sys

import words

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIST = pathlib.Path(__file__).resolve().parent / "messages.txt"
HEAD = "# The texts of all errors and warnings, for reading; written by `messages.py update`.\n"
TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)'
                   r'|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"'
                   r'|"(?P<text>(?:\\.|[^"\\\n])*)"'
                   r"|(?P<char>(?<![0-9a-zA-Z])'(?:\\.|[^'\\\n])+')"
                   r"|(?P<word>[A-Za-z_]\w*|[0-9][\w.']*)|(?P<sign>[^\s\\])", re.S)
OPEN, CLOSE = "([{", ")]}"
# Names that say how a value becomes text, and not which value it is.
FILLERS = {"std", "string", "string_view", "to_string", "move", "c_str", "data", "str", "text", "what", "value", "size",
           "count", "get", "name", "first", "second", "static_cast", "const", "auto", "begin", "end", "nullptr"}
PLAIN = {r"\"": '"', r"\\": "\\", r"\n": "\\n", r"\'": "'"}


def tokens(source):
    """(kind, text) of each token of a source; comments are left out."""
    found = []
    for token in TOKEN.finditer(source):
        if token.group("comment"):
            continue
        if token.group("raw") is not None:
            found.append(("text", token.group("raw")))
        elif token.group("text") is not None:
            found.append(("text", re.sub(r"\\.", lambda mark: PLAIN.get(mark.group(), mark.group()), token.group("text"))))
        elif token.group("char"):
            found.append(("text", PLAIN.get(token.group("char")[1:-1], token.group("char")[1:-1])))
        elif token.group("word"):
            found.append(("word", token.group("word")))
        else:
            found.append(("sign", token.group("sign")))
    return found


def operand(all_tokens, at):
    """What an operand of `+` inserts, and the place behind it."""
    depth, inside = 0, []
    while at < len(all_tokens):
        kind, text = all_tokens[at]
        if kind == "sign":
            if text in OPEN:
                depth += 1
            elif text in CLOSE:
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and text in "+,;?:":
                # `::` joins names
                if text != ":" or not (all_tokens[at + 1] == ("sign", ":") or all_tokens[at - 1] == ("sign", ":")):
                    break
        inside.append((kind, text))
        at += 1
    literals = [text for kind, text in inside if kind == "text"]
    if literals:
        return ("{" + "|".join(literals) + "}" if len(inside) > 1 else literals[0]), at
    names = [text.rstrip("_") for kind, text in inside if kind == "word"]
    telling = [name for name in names if name not in FILLERS and not name[0].isdigit()]
    return "{" + (telling or names or ["value"])[-1] + "}", at


def texts(source):
    """The texts of one source, in its order."""
    all_tokens, found, at = tokens(source), [], 0
    while at < len(all_tokens):
        kind, text = all_tokens[at]
        if kind != "text" or not text.startswith("troupe: "):
            at += 1
            continue
        whole, at = text, at + 1
        wrapped = at >= 3 and all_tokens[at - 2] == ("sign", "(") and all_tokens[at - 3][1] in ("string", "line")
        while at < len(all_tokens):
            kind, text = all_tokens[at]
            if kind == "text":
                whole, at = whole + text, at + 1
            elif kind == "word" and all_tokens[at - 1][0] == "text" and all_tokens[at + 1][0] == "text":  # the parameter of a macro
                whole, at = whole + "{" + text + "}", at + 1
            elif (kind, text) == ("sign", ")") and wrapped:
                wrapped, at = False, at + 1
            elif (kind, text) == ("sign", "+") and all_tokens[at + 1] not in (("sign", "+"), ("sign", "=")):
                added, at = operand(all_tokens, at + 1)
                whole += added
            else:
                break
        found.append(whole.replace("\n", "\\n"))
    return found


def library(root):
    """(path, texts) of each source and header of the library that has any."""
    for path in words.files(root):
        if path.parts[0] in ("include", "src") and path.suffix in (".hpp", ".h", ".cpp") \
                and not re.search(r"\.(test|model|bench)\.", path.name):
            found = texts((root / path).read_text())
            if found:
                yield path, found


def listed(root):
    return HEAD + "".join(f"\n{path}\n" + "".join(f"  {text}\n" for text in found) for path, found in library(root))


def phrases(root):
    """The texts that hold a phrase which makes a text hard to read."""
    patterns = {name: re.compile(pattern, re.I) for name, pattern in words.TEXT.items()}
    return [f"{path}: {name}: {text}" for path, found in library(root) for text in found
            for name, pattern in patterns.items() if pattern.search(re.sub(r"\{\w+\}", "_", text))]


def check(root):
    wrong = phrases(root)
    if not LIST.exists() or LIST.read_text() != listed(root):
        wrong.append(f"{LIST.name} is stale: run `messages.py update`, and read what changed")
    return wrong


def main():
    if sys.argv[1:] == ["update"]:
        LIST.write_text(listed(ROOT))
        return 0
    wrong = check(ROOT)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
