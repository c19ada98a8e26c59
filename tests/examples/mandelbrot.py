"""mandelbrot: the same PNG, byte for byte, on every policy and pool size; points whose colour is known; wrong arguments."""

import os
import pathlib
import struct
import subprocess
import sys
import zlib

MANDELBROT = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "mandelbrot"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "mandelbrot_check"
WIDTH, HEIGHT = 150, 100
SECONDS_MAX = 60
POLICIES = [{"TROUPE_WORKERS": "1"}, {"TROUPE_WORKERS": "2"}, {"TROUPE_WORKERS": "8"},
            {"TROUPE_WORKERS": "2", "TROUPE_POLICY": "shared_queue"}, {"TROUPE_POLICY": "simulated"}]


def fail(text):
    print(f"mandelbrot: {text}")
    sys.exit(1)


def mandelbrot(*arguments, environment=None):
    return subprocess.run([MANDELBROT, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(environment or {})}, cwd=FOLDER)


def pixels_of(png):
    """Rows of (red, green, blue) of an 8-bit RGB image."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        fail("not a PNG")
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    if (width, height, depth, colour) != (WIDTH, HEIGHT, 8, 2):
        fail(f"its head says {(width, height, depth, colour)}")
    raw, stride, rows, before = zlib.decompress(data), 3 * width, [], bytes(3 * width)
    for row in range(height):
        kind, line = raw[row * (stride + 1)], bytearray(raw[row * (stride + 1) + 1:(row + 1) * (stride + 1)])
        for i in range(stride):
            a, b, c = line[i - 3] if i >= 3 else 0, before[i], before[i - 3] if i >= 3 else 0
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, 3)])
        before = bytes(line)
    return rows


FOLDER.mkdir(parents=True, exist_ok=True)
images = []
for number, policy in enumerate(POLICIES):
    done = mandelbrot("--out", f"{number}.png", "--width", WIDTH, "--height", HEIGHT, environment=policy)
    if done.returncode != 0:
        fail(f"{policy}: ended with {done.returncode}: {done.stderr}")
    images.append((FOLDER / f"{number}.png").read_bytes())
    if images[-1] != images[0]:
        fail(f"{policy}: the image is another one than with {POLICIES[0]}")
rows = pixels_of(images[0])
for x, y, inside in ((0, 0, True), (-1, 0, True), (-0.1, 0.7, True), (0.5, 0.5, False), (-2.1, 0, False), (0.3, -0.8, False)):
    pixel = rows[round(HEIGHT / 2 + y * WIDTH / 3)][round(WIDTH / 2 + (x + 0.75) * WIDTH / 3)]
    if (pixel == (0, 0, 0)) != inside:
        fail(f"{x} + {y}i is {pixel}")
for wrong in (["--width", "0"], ["--width"], ["--out", ""], ["--span", "wide"], ["--colour", "red"]):
    if mandelbrot(*wrong).returncode != 2:
        fail(f"took {wrong}")
if mandelbrot("--out", "/no/such/folder/a.png", "--width", 2, "--height", 2).returncode != 1:
    fail("wrote nowhere without saying so")
done = mandelbrot("--width", 2, "--height", 2, environment={"TROUPE_WORKERS": "0"})
if done.returncode != 1 or not done.stderr.startswith("mandelbrot: troupe: environment variable TROUPE_WORKERS=0: "):
    fail(f"with 0 workers it ended with {done.returncode} and said {done.stderr}")
