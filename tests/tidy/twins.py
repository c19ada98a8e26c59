#!/usr/bin/env python3
"""The free functions of runtime/here.hpp have the forms of the methods of `runtime`, and each method without one is listed here.

Rejected: one list in a macro, which both headers expand: no reader and no tool finds a declaration in it.
"""

import pathlib
import re
import sys

import _declarations

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "include/troupe/runtime"
REFUSAL = re.compile(r"^ *(TROUPE_REFUSE_REST\((\w+),.*?\));$", re.M | re.S)

# Methods that code inside the runtime does not need, since its handlers have a nearer function or it must not do so.
METHODS_ALONE = {
    "run, run_once, poll, wake_descriptor, stop, main": "they drive the program, from the outside",
    "errors, take_errors, thrown, clear_errors, workers, metrics, dump, seed": "they report on the program to its owner",
    "activate, post": "a handler spawns an actor or a task instead",
    "hold": "work that is known to the runtime holds the program already",
    "blocking": "actor/blocking.hpp has the free function, below the runtime",
}
# Forms of a method of which the free function has others alone.
FORMS_ALONE = {
    "template <class T, class... Args> ref<T> spawn(const on_thread& where, Args&&... args)": "the owner of a runtime decides on its threads",
    "template <class T> future<T> spawn(const context_options& heap, task<T>&& running)": "a task inside the runtime opens a context itself",
    "template <int = 0, actor::may_make_task Maker, class... Args> auto spawn(const context_options& heap, Maker&& maker, Args&&... args)":
        "as above",
}


def form_of(text):
    """A declaration without line breaks, `inline`, what is the method's object, and attributes."""
    text = re.sub(r"\s+", " ", text).replace("( ", "(").strip(" ;").removeprefix("inline ")
    return re.sub(r"\)(?: const)?(?: noexcept)?$", ")", text)


def forms_of(text, declarations):
    """The forms of each function, by its name."""
    found = {}
    for declaration in declarations:
        if declaration.kind == "function":
            found.setdefault(declaration.name, set()).add(form_of(declaration.text))
    for refusal, name in REFUSAL.findall(text):
        found.setdefault(name, set()).add(form_of(refusal))
    return found


def problems(here, runtime):
    (space,) = _declarations.read(here)
    methods = forms_of(runtime, next(one.members for one in _declarations.read(runtime)[0].members if one.name == "runtime" and one.members))
    functions = forms_of(here, space.members)
    alone = {name for names in METHODS_ALONE for name in names.split(", ")}
    unused = set(FORMS_ALONE)
    for name in sorted(set(functions) - set(methods)):
        yield f"here.hpp has {name}, and `runtime` has no such method"
    for name in sorted(set(methods) - set(functions) - alone):
        if name.isidentifier() and name != "runtime" and not name.startswith("operator"):
            yield f"`runtime` has the method {name}, and here.hpp no such function: add it, or the reason to METHODS_ALONE"
    for name in sorted(alone - (set(methods) - set(functions))):
        yield f"METHODS_ALONE lists {name} for nothing"
    for name in sorted(set(functions) & set(methods)):
        for form in sorted(functions[name] - methods[name]):
            yield f"only here.hpp has the form {form}"
        for form in sorted(methods[name] - functions[name]):
            if form in unused:
                unused.remove(form)
            else:
                yield f"only `runtime` has the form {form}: add it to here.hpp, or the reason to FORMS_ALONE"
    for form in sorted(unused):
        yield f"FORMS_ALONE lists {form} for nothing"


def main():
    here, runtime = ((FOLDER / name).read_text() for name in ("here.hpp", "runtime.hpp"))
    found = list(problems(here, runtime))
    # The test must be able to fail.
    for planted, expected in ((here.replace("timer every(", "timer each("), "no such method"),
                              (here.replace("const timer_options& options);", "timer_options options);", 1), "only here.hpp has the form"),
                              (here.replace('TROUPE_REFUSE_REST(every, TROUPE_TIMER_REFUSES("every"));', ""), "TROUPE_REFUSE_REST(every")):
        if not any(expected in problem for problem in problems(planted, runtime)):
            found.append(f"a planted difference is not found: {expected}")
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
