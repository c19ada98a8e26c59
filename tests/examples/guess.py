"""guess answers every line of its input, on every policy, and ends with the right number or the input's end."""

import os
import pathlib
import re
import subprocess
import sys

GUESS = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "guess"
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_POLICY": "shared_queue", "TROUPE_WORKERS": "2"},
            {"TROUPE_POLICY": "simulated"}]


def fail(text):
    print(f"guess: {text}")
    sys.exit(1)


def guess(*arguments, text="", environment=None):
    return subprocess.run([GUESS, *map(str, arguments)], input=text, capture_output=True, text=True,
                          timeout=SECONDS_MAX, env={**os.environ, **(environment or {})})


def play(most, seed, lines, environment=None):
    """What it answered to the lines, without the first line and the prompts."""
    done = guess("--most", most, "--seed", seed, text="".join(lines), environment=environment)
    if done.returncode != 0 or done.stderr:
        fail(f"{lines}: ended with {done.returncode}: {done.stderr}")
    first, rest = done.stdout.split("\n", 1)
    if first != f"I think of a number from 1 to {most}. Which is it?":
        fail(f"began with {first}")
    return re.sub(r"Guess \d+: ", "", rest)


def secret_of(most, seed):
    """An empty input gives the number away."""
    return int(re.fullmatch(r"\nIt was (\d+)\. Good-bye!\n", play(most, seed, []))[1])


def check_search(most, seed, environment):
    """Halving finds it, and each answer is right."""
    secret, least, greatest, lines, expected = secret_of(most, seed), 1, most, [], ""
    if not 1 <= secret <= most:
        fail(f"seed {seed}: {secret} is not from 1 to {most}")
    while True:
        middle = (least + greatest) // 2
        lines.append(f"{middle}\n")
        if middle == secret:
            tries = f"{len(lines)} {'try' if len(lines) == 1 else 'tries'}"
            expected += f"Yes, it is {secret}! You needed {tries}.\n"
            break
        expected += "It is higher.\n" if middle < secret else "It is lower.\n"
        least, greatest = (middle + 1, greatest) if middle < secret else (least, middle - 1)
    for after in ([], ["1\n", "more\n"]):  # what comes behind the end of the game is not looked at
        said = play(most, seed, lines + after, environment)
        if said != expected:
            fail(f"seed {seed}, {environment}: to {lines} it said {said}, not {expected}")


def check_bad_input():
    polite = "Please type a whole number from 1 to 100.\n"
    secret = secret_of(100, 5)
    bad = ["\n", "   \n", "abc\n", "0\n", "101\n", "-5\n", "+5\n", "1.5\n", "5 6\n", "99999999999999999999\n",
           "0x10\n", "x" * 100_000 + "\n", "\0\n"]
    said = play(100, 5, bad + [f" \t{secret} \r\n"])
    if said != polite * len(bad) + f"Yes, it is {secret}! You needed 1 try.\n":
        fail(f"to bad input it said {said}")
    if play(100, 5, ["abc"]) != polite + f"\nIt was {secret}. Good-bye!\n":
        fail("the input's end in a bad line should be answered, and end the game")
    if play(100, 5, [f"{secret}"]) != f"Yes, it is {secret}! You needed 1 try.\n":
        fail("a last line without an end counts, too")


def main():
    for environment in POLICIES:
        for most, seed in ((1, 0), (2, 1), (100, 1), (100, 2), (1_000_000_000, 3)):
            check_search(most, seed, environment)
    if len({secret_of(1_000_000, seed) for seed in range(10)}) != 10:
        fail("ten seeds should give ten numbers")
    if secret_of(1_000_000, 4) != secret_of(1_000_000, 4):
        fail("the same seed should give the same number")
    if len({guess("--most", 1_000_000_000).stdout for _ in range(3)}) != 3:
        fail("without a seed the number should be one by chance")
    check_bad_input()
    for arguments in (["--most"], ["--most", "0"], ["--most", "1000000001"], ["--most", "x"], ["--seed"],
                      ["--seed", "-1"], ["--seed", "1", "--seed", "1"], ["--what"], ["5"]):
        done = guess(*arguments)
        if done.returncode != 2 or not done.stderr.startswith("usage:"):
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
    print("guess: every line has its answer")


main()
