"""bank keeps every cent, on every policy, and names each line of a file that it refuses."""

import os
import pathlib
import re
import subprocess
import sys

BANK = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "bank"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "bank_check"
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_POLICY": "shared_queue", "TROUPE_WORKERS": "2"}, {"TROUPE_POLICY": "simulated"}]
ACCOUNTS_MAX = 1_000_000


def fail(text):
    print(f"bank: {text}")
    sys.exit(1)


def bank(*arguments, text="", environment=None):
    return subprocess.run([BANK, *map(str, arguments)], input=text, capture_output=True, text=True,
                          timeout=SECONDS_MAX, env={**os.environ, **(environment or {})})


def cents(money):
    if not re.fullmatch(r"\d+\.\d\d", money):
        fail(f"{money} is no amount")
    return int(money.replace(".", ""))


def check(what, done, balances, transfers):
    """The table has every account; nothing was made or lost; the count of the refusals is right. Gives the refusals."""
    if done.returncode != 0 or done.stderr:
        fail(f"{what}: ended with {done.returncode}: {done.stderr}")
    head, *rows, counts, audit = done.stdout.splitlines()
    if head.split() != ["before", "out", "in", "after", "refused", "account"]:
        fail(f"{what}: the table begins with {head}")
    if [row.split(maxsplit=5)[5] for row in rows] != list(balances):
        fail(f"{what}: the table has other accounts: {done.stdout}")
    columns = [[*map(cents, row.split()[:4]), int(row.split()[4])] for row in rows]
    if [row[0] for row in columns] != list(balances.values()):
        fail(f"{what}: the balances before are wrong: {done.stdout}")
    if any(after != before - out + in_ for before, out, in_, after, _ in columns):
        fail(f"{what}: a row does not add up: {done.stdout}")
    before, out, in_, after, refused = map(sum, zip(*columns))
    if out != in_ or before != after:
        fail(f"{what}: money was made or lost: {done.stdout}")
    if counts != f"{transfers - refused} transfers made, {refused} refused":
        fail(f"{what}: of {transfers} transfers, {refused} of them refused, it says: {counts}")
    total = f"{before // 100}.{before % 100:02}"
    if audit != f"audit: {total} before, {total} after":
        fail(f"{what}: {audit}, not {total}")
    return refused


def file_of(balances):
    return "".join(f"{name},{balance}\n" for name, balance in balances.items())


def check_totals():
    file = FOLDER / "accounts.csv"
    some = {f"account {i}": i * 1_007 for i in range(50)}
    file.write_text(file_of(some))
    for environment in POLICIES:
        refused = check(environment, bank(file, "--transfers", 20_000, environment=environment), some, 20_000)
        if not 0 < refused < 20_000:
            fail(f"{environment}: refused {refused}; the poor should be refused, the others not")
    check("two accounts", bank("-", text="a,1\nb,10001"), {"a": 1, "b": 10_001}, 10_000)
    nothing = {"a": 0, "b": 0}
    if check("no money", bank("-", "--transfers", 777, text=file_of(nothing)), nothing, 777) != 777:
        fail("without money there should be no transfer")
    if check("no transfers", bank(file, "--transfers", 0), some, 0) != 0:
        fail("nothing was to be refused")
    rich = {"a": 10**12, "b": 10**12}
    if check("the rich", bank("-", "--transfers", 100, text=file_of(rich)), rich, 100) != 0:
        fail("the rich were refused")


def check_seeds():
    text = file_of({"a": 50_000, "b": 20_000, "c": 0})
    simulated = [bank("-", "--seed", seed, text=text, environment={"TROUPE_POLICY": "simulated"}).stdout
                 for seed in (1, 1, 2, 2**64 - 1)]
    if simulated[0] != simulated[1] or len(set(simulated)) != 3:
        fail("the same seeds should draw the same transfers, others others")


def check_refusals():
    good = "# a comment\n\nAda,1\r\n  Bob the 2nd ,2\n" + "n" * 40 + ",1000000000000\n"
    if bank("-", text=good).returncode != 0:
        fail("it refuses what it should take")
    no_number = "the balance is no whole number of cents from 0 to 10^12"
    for line, words in (("Eve", "there is no comma between name and balance"), (",5", "the name is missing"),
                        ("n" * 41 + ",5", "the name is longer than 40 bytes"),
                        ("Ada,7", "there is a second account of this name"), ("Eve,", no_number),
                        ("Eve,-1", no_number), ("Eve,-0", no_number), ("Eve,1.5", no_number), ("Eve,1,2", no_number),
                        ("Eve, 1", no_number), ("Eve,1000000000001", no_number),
                        ("Eve,99999999999999999999", no_number)):
        done = bank("-", text=good + line + "\nlast,1\n")
        expected = f"bank: standard input is refused:\n  line 6: {words}\n"
        if done.returncode != 1 or done.stderr != expected or done.stdout:
            fail(f"{line}: ended with {done.returncode} and said {done.stderr} {done.stdout}")
    # Ten are named, and the others counted.
    for wrong, last in ((10, "line 10: there is no comma between name and balance"), (11, "and 1 more")):
        done = bank("-", text="x\n" * wrong)
        lines = done.stderr.splitlines()
        if done.returncode != 1 or len(lines) != 1 + wrong or lines[-1].strip() != last:
            fail(f"{wrong} wrong lines: said {done.stderr}")

    empty = FOLDER / "empty.csv"
    empty.write_text("")
    one = FOLDER / "one.csv"
    one.write_text("# only one\nAda,5\n")
    for path, words in ((empty, "accounts: 0; a transfer needs two"), (one, "accounts: 1; a transfer needs two"),
                        (FOLDER, "cannot read"), (FOLDER / "none.csv", "cannot open")):
        done = bank(path)
        if done.returncode != 1 or words not in done.stderr or str(path) not in done.stderr or done.stdout:
            fail(f"{path}: ended with {done.returncode} and said {done.stderr} {done.stdout}")
    many = FOLDER / "many.csv"
    with many.open("w") as rows:
        rows.writelines(f"{i},1\n" for i in range(ACCOUNTS_MAX + 1))
    done = bank(many)
    words = f"line {ACCOUNTS_MAX + 1}: there are more than {ACCOUNTS_MAX} accounts"
    if done.returncode != 1 or words not in done.stderr:
        fail(f"one account too many: ended with {done.returncode} and said {done.stderr}")
    many.unlink()

    for arguments in ([], ["a", "b"], ["a", "--transfers"], ["a", "--transfers", "-1"],
                      ["a", "--transfers", "10000001"], ["a", "--seed", ""], ["a", "--seed", "x"],
                      ["a", "--seed", "1", "--seed", "1"], ["a", "--what"]):
        done = bank(*arguments)
        if done.returncode != 2 or not done.stderr.startswith("usage:"):
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")


def main():
    FOLDER.mkdir(exist_ok=True)
    check_totals()
    check_seeds()
    check_refusals()
    print("bank: no cent is lost")


main()
