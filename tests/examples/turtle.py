"""turtle draws every step of its curves, on every policy, with a window and without."""

import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

TURTLE = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "turtle"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "turtle_check"
SECONDS_MAX = 60
STEPS = {"koch": lambda n: 3 * 4**n, "hilbert": lambda n: 4**n - 1, "dragon": lambda n: 2**n}
PANEL_WIDTH, HEIGHT = 640, 720
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"},
            {"TROUPE_POLICY": "shared_queue", "TROUPE_WORKERS": "2"}, {"TROUPE_POLICY": "simulated"}]
# The machine may have a display, where a window would wait for a key.
HEADLESS = {name: value for name, value in os.environ.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
# The library behind cairo's fonts never frees its tables; the leak checker is to look at ours.
LEAKS_OF_OTHERS = "leak:libfontconfig\n"


def fail(text):
    print(f"turtle: {text}")
    sys.exit(1)


def turtle(*arguments, environment=None):
    return subprocess.run([TURTLE, *map(str, arguments)], capture_output=True, text=True, cwd=FOLDER,
                          timeout=SECONDS_MAX, env={**HEADLESS, **(environment or {})})


def check_picture(file, width):
    """It is a PNG of this width, and not a blank one, which would be far smaller than a curve."""
    content = file.read_bytes()
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or not content.endswith(b"IEND\xaeB`\x82"):
        fail(f"{file} is not a whole PNG file")
    if struct.unpack(">II", content[16:24]) != (width, HEIGHT):
        fail(f"{file} is {struct.unpack('>II', content[16:24])}, not {(width, HEIGHT)}")
    if len(content) < 10_000:
        fail(f"{file} is {len(content)} bytes: hardly a curve")


def check(names, depth, environment, *arguments):
    file = FOLDER / "picture.png"
    file.unlink(missing_ok=True)
    done = turtle(names[0] if len(names) == 1 else "all", "--depth", depth, "--out", file, *arguments,
                  environment=environment)
    if done.returncode != 0:
        fail(f"{names} {depth} {environment}: ended with {done.returncode}: {done.stderr}")
    counts = dict(re.findall(rf"^(\w+): depth {depth}, (\d+) steps = ", done.stdout, re.MULTILINE))
    if counts != {name: str(STEPS[name](depth)) for name in names}:
        fail(f"{names} {depth} {environment}: printed {done.stdout}")
    check_picture(file, PANEL_WIDTH * len(names))
    return done


def check_window():
    """SDL's dummy driver makes a window that nobody sees; an interrupt closes it as a key would."""
    file = FOLDER / "window.png"
    shown = subprocess.Popen([TURTLE, "--window", "--out", file], stdout=subprocess.PIPE, text=True,
                             env={**HEADLESS, "SDL_VIDEODRIVER": "dummy"})
    said = ""
    while "window.png:" not in said:  # the last line, printed when the picture is complete
        line = shown.stdout.readline()
        if not line:
            fail(f"with a window it ended with {shown.wait()} after printing {said}")
        said += line
    if shown.poll() is not None:
        fail("it did not keep the window open")
    shown.send_signal(signal.SIGINT)
    if shown.wait(SECONDS_MAX) != 0:
        fail(f"when the window was closed it ended with {shown.returncode}")
    check_picture(file, 3 * PANEL_WIDTH)


def main():
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "leaks").write_text(LEAKS_OF_OTHERS)
    HEADLESS["LSAN_OPTIONS"] = f"suppressions={FOLDER}/leaks:print_suppressions=0"
    for environment in POLICIES:
        for depth in (5, 6):
            check(list(STEPS), depth, environment)
    for name in STEPS:
        check([name], 7, {})
    check(["dragon"], 17, {})
    for depth in (0, 1):  # a curve of no step at all among them
        if turtle("--depth", depth, "--out", "small.png").returncode != 0:
            fail(f"depth {depth} failed")

    done = check(list(STEPS), 5, {}, "--window")
    if done.stderr.count("no window") != 1:
        fail(f"without a display it should say once that there is no window, but said {done.stderr}")
    check_window()

    for arguments in (["bird"], ["--depth"], ["--depth", "x"], ["--depth", "-1"], ["koch", "--depth", "11"],
                      ["--colour"], ["koch", "dragon"], ["koch", "koch"], ["--out", "a.png", "--out", "b.png"],
                      ["--depth", "1", "--depth", "1"], ["--window", "--no-window"]):
        done = turtle(*arguments)
        if done.returncode != 2 or not done.stderr.startswith("usage:"):
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
    done = turtle("--out", "no/such/folder.png")
    if done.returncode != 1 or "cannot write no/such/folder.png" not in done.stderr:
        fail(f"where nothing can be written it ended with {done.returncode} and said {done.stderr}")
    print("turtle: draws every step")


main()
