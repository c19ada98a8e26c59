"""What a person reads of the names that compilers give to handlers and coroutines, without GDB.

Usage: names_test.py"""

import os
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "tools" / "gdb"))
sys.modules["gdb"] = types.SimpleNamespace(error=RuntimeError)
from troupe_debugger import names  # noqa: E402

HANDLERS = {
    "troupe::actor::method_message<n::A<int>, &n::A<int>::f, int>::act_on(troupe::sched::message*)": "&n::A<int>::f",
    "troupe::actor::part_message<troupe::actor::asked_message<(anonymous namespace)::A, troupe::actor::method_call<"
    "(anonymous namespace)::A, &((anonymous namespace)::A::f(int) const), int> > >::act_on(troupe::sched::message*)": "&A::f",
    "troupe::actor::asked_message<Store, troupe::actor::method_call<Store, (int (Store::*)(int))(&Store::read), int> >::act_on(x)":
        "&Store::read",
    "troupe::actor::method_message<A, &A::operator(), int>::act_on(m)": "&A::operator()",
    "troupe::actor::callable_message<Table, main::{lambda(Table&)#1}>::act_on(troupe::sched::message*)": "main::{lambda(Table&)#1}",
    "troupe::actor::constructor_message<A, int>::act_on(m)": "constructor",
    "troupe::actor::spawned_state<void>::act_on(troupe::sched::message*, troupe::sched::message_act)": "a spawned task",
}
FUNCTIONS = {
    "(anonymous namespace)::Bank::check((anonymous namespace)::Bank::check(int)::_Z5checkEi.Frame*) [clone .actor]": "Bank::check",
    "main::{lambda(int)#1}::operator()(main::{lambda(int)#1}::operator()(int)::_Z1.Frame*) const [clone .actor]":
        "main::{lambda(int)#1}",
    "foo(int)::{lambda()#2}::operator()(foo(int)::_Z1.Frame*) [clone .actor]": "foo::{lambda()#2}",
    "troupe::tasks::all_of<int, int>(std::vector<int>) [clone .resume]": "troupe::tasks::all_of<int, int>",
    "troupe::task<int> (anonymous namespace)::Account::audit(int)": "Account::audit",
    "troupe::task<T> f(T) [with T = int]": "f",
    "A::operator()(int) const": "A::operator()",
}


def main():
    failed = 0
    for symbol, words in HANDLERS.items():
        of = names.Names(None)
        of.symbols[1] = symbol
        if of.handler(1) != words:
            failed += 1
            print(f"debugger: {symbol} is told as {of.handler(1)!a}, not {words!a}")
    for symbol, words in FUNCTIONS.items():
        if names.plain(symbol) != words:
            failed += 1
            print(f"debugger: {symbol} is told as {names.plain(symbol)!a}, not {words!a}")
    sys.exit(failed != 0)


main()
