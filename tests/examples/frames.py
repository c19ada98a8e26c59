"""frames draws as many frames as it is told, at 60 a second, while its balls move."""

import os
import pathlib
import subprocess
import sys
import time

FRAMES = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "frames"
# SDL then draws into memory, and needs no screen.
HIDDEN = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_RENDER_DRIVER": "software"}


def frames(*arguments):
    return subprocess.run([FRAMES, *map(str, arguments)], env=HIDDEN, capture_output=True, text=True, timeout=50)


began = time.monotonic()
done = frames("--frames", 30, "--balls", 50)
took = time.monotonic() - began
if done.returncode != 0 or done.stdout != "30 frames, every ball moved\n":
    sys.exit(f"frames ended with {done.returncode}: {done.stdout}{done.stderr}")
if took < 30 / 60:
    sys.exit(f"frames drew 30 frames in {took:.3f} s, and not at 60 a second")
for arguments in (["--frames"], ["--balls", "0"], ["--frames", "many"], ["more"]):
    done = frames(*arguments)
    if done.returncode == 0 or not done.stderr:
        sys.exit(f"frames {arguments} ended with {done.returncode}: {done.stderr}")
print("frames: 60 a second")
