"""sonic writes the same bytes with any number of workers, and what is in the score is what is heard."""

import array
import cmath
import math
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import wave
import zlib

SONIC = pathlib.Path(os.environ["TROUPE_EXAMPLES_DIR"]) / "sonic"
SCORES = pathlib.Path(os.environ["TROUPE_SOURCE_DIR"]) / "examples" / "sonic"
FOLDER = pathlib.Path(os.environ["TROUPE_BINARY_DIR"]) / "sonic_check"
SECONDS_MAX = 120
RATE = 48_000
PEAK = 0.89
# The library behind cairo's fonts never frees its tables; the leak checker is to look at ours.
LEAKS_OF_OTHERS = "leak:libfontconfig\n"
ENVIRONMENT = {**os.environ, "LSAN_OPTIONS": f"suppressions={FOLDER}/leaks:print_suppressions=0"}
SIZE = 8192  # of the transforms below; a bin is 5.859 Hz, and 1500 Hz is the middle of number 256
TURNS = [cmath.exp(-2j * math.pi * i / SIZE) for i in range(SIZE // 2)]
HANN = [0.5 - 0.5 * math.cos(2 * math.pi * i / SIZE) for i in range(SIZE)]
SINE = "instrument sine\nenvelope 0.01 0 1 0.2\ntrack sine\n"
EXACT = "tempo 60\n" + SINE


def fail(text):
    print(f"sonic: {text}")
    sys.exit(1)


def sonic(*arguments, environment=None):
    done = subprocess.run([SONIC, *map(str, arguments)], capture_output=True, cwd=FOLDER, timeout=SECONDS_MAX,
                          env={**ENVIRONMENT, **(environment or {})})
    # Not as text, which has no carriage returns; a leak checker may regret that it cannot name others' functions.
    done.stdout = done.stdout.decode(errors="replace")
    done.stderr = re.sub(r"==\d+==WARNING: .* symbolizer!\n", "", done.stderr.decode(errors="replace"))
    return done


def rendered(what, *arguments, environment=None):
    done = sonic(*arguments, environment=environment)
    if done.returncode != 0 or done.stderr:
        fail(f"{what}: ended with {done.returncode} and said {done.stderr}")
    return done.stdout


def heard(file):
    """The left and the right channel, -1 to 1, of a stereo file with 24 bits."""
    with wave.open(str(file)) as sound:
        if (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) != (2, 3, RATE):
            fail(f"{file} is {sound.getparams()}")
        packed = sound.readframes(sound.getnframes())
        if len(packed) != 6 * sound.getnframes() or file.stat().st_size < len(packed):
            fail(f"{file} is shorter than it says")
    wide = bytearray(len(packed) // 3 * 4)  # into the upper bytes of 32 bits
    for i in range(3):
        wide[i + 1::4] = packed[i::3]
    samples = array.array("i", bytes(wide))
    if sys.byteorder == "big":
        samples.byteswap()
    return [[sample / 2**31 for sample in samples[side::2]] for side in (0, 1)]


def loudness(samples):
    return math.sqrt(sum(sample * sample for sample in samples) / len(samples))


def transform(values):
    if len(values) == 1:
        return values
    even, odd = transform(values[0::2]), transform(values[1::2])
    turned = [turn * one for turn, one in zip(TURNS[::SIZE // len(values)], odd)]
    return [a + b for a, b in zip(even, turned)] + [a - b for a, b in zip(even, turned)]


def spectrum(samples, first):
    """How loud each bin is, from this frame on."""
    hann = [sample * part for sample, part in zip(samples[first:first + SIZE], HANN, strict=True)]
    return [4 * abs(one) / SIZE for one in transform(hann)[:SIZE // 2]]


def play(what, score, *arguments):
    file = FOLDER / "tried.score"
    file.write_text(score)
    rendered(what, file, "-o", "tried.wav", *arguments)
    return heard(FOLDER / "tried.wav")


def pixels(file):
    """Rows of the red, green and blue bytes of a PNG of 8 bits."""
    content = file.read_bytes()
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or not content.endswith(b"IEND\xaeB`\x82"):
        fail(f"{file} is not a whole PNG file")
    width, height, depth, colours = struct.unpack(">IIBB", content[16:26])
    if (width, height, depth, colours) != (1320, 720, 8, 2):
        fail(f"{file} is {(width, height, depth, colours)}")
    data, at = b"", 8
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        if kind == b"IDAT":
            data += content[at + 8:at + 8 + length]
        at += length + 12
    raw, above, rows = zlib.decompress(data), bytes(3 * width), []
    for start in range(0, len(raw), 3 * width + 1):
        method, row = raw[start], bytearray(raw[start + 1:start + 3 * width + 1])
        for i in range(3 * width if method else 0):
            left, corner = (row[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            if method == 4:
                guess = left + above[i] - corner
                near = min((left, above[i], corner), key=lambda one: abs(guess - one))
            else:
                near = (left, above[i], (left + above[i]) // 2)[method - 1]
            row[i] = (row[i] + near) & 255
        rows.append(above := bytes(row))
    return rows


def check_same_bytes(name, seconds, *others):
    """With any number of workers; and it is music as long and as loud as it should be."""
    first = None
    for arguments, environment in ((("--workers", 1), {}), (("--workers", 2), {}), (("--workers", 8), {}), *others):
        said = rendered(name, SCORES / f"{name}.score", "-o", f"{name}.wav", "--spectrogram", f"{name}.png", *arguments,
                        environment=environment)
        made = [said] + [(FOLDER / f"{name}.{kind}").read_bytes() for kind in ("wav", "png")]
        first = first or made
        if made != first:
            fail(f"{name}: with {arguments} {environment} it is another one than with one worker")
    if not re.search(rf": {seconds:g} s out of \d+ nodes\n{name}.wav\n{name}.png\n$", first[0]):
        fail(f"{name}: said {first[0]}")
    channels = heard(FOLDER / f"{name}.wav")
    if abs(len(channels[0]) / RATE - seconds) > 0.06:
        fail(f"{name}: {len(channels[0]) / RATE} s long, not {seconds}")
    if abs(max(max(map(abs, channel)) for channel in channels) - PEAK) > 1e-3:
        fail(f"{name}: not as loud as it should be, or clipped")
    if channels[0] == channels[1]:
        fail(f"{name}: left and right are the same")
    for channel in channels:
        for second in range(int(seconds) - 3):
            if loudness(channel[second * RATE:(second + 1) * RATE:16]) < 0.01:
                fail(f"{name}: nothing is heard in second {second}")
    if len(first[2]) < 200_000:
        fail(f"{name}: hardly a picture of it")


def check_sine():
    left, right = play("a sine", EXACT + "play 1500hz:2", "--spectrogram", "tried.png")
    if abs(len(left) - 2.2 * RATE) > 1 or left != right:
        fail(f"a sine of 2.2 s has {len(left)} frames, or sides of its own")
    bins = spectrum(left, RATE // 2)
    if abs(bins[256] - PEAK) > 0.001 or max(bins[:254] + bins[259:]) > 1e-5:
        fail(f"1500 Hz should be in bin 256 and nowhere else: {bins.index(max(bins))}, {bins[256]}")
    if loudness(left[-100:]) > 1e-4 or loudness(left[int(1.9 * RATE):2 * RATE]) < 0.5:
        fail("the envelope's end should be silent, and not begin before the note's end")
    # In the picture: the brightest row of each column, but where it begins and ends.
    rows = pixels(FOLDER / "tried.png")[60:660]
    expected = 600 * math.log(16_000 / 1500) / math.log(16_000 / 40)
    for column in range(90 + 100, 90 + 1000, 50):
        bright = max(range(600), key=lambda row: sum(rows[row][3 * column:3 * column + 3]))
        if abs(bright - expected) > 1.5:
            fail(f"in the picture, column {column}, 1500 Hz is in row {bright}, not {expected}")
    for pitch, hz in (("A4", 440), ("C0", 16.3516), ("F#5", 739.989), ("Bb3", 233.082), ("B9", 15804.27)):
        bins = spectrum(play(pitch, EXACT + f"play {pitch}:1/2")[0], RATE // 8)
        if abs(bins.index(max(bins)) - hz * SIZE / RATE) > 0.6:
            fail(f"{pitch} should be {hz} Hz; the peak is in bin {bins.index(max(bins))}")


def check_sounds():
    """What each word of a score does to what is heard."""
    def levels(what, score, *bins):
        left = play(what, score)[0]
        all_of_them = spectrum(left, len(left) // 3)
        return [all_of_them[one] / all_of_them[bins[0]] for one in bins]

    def check_levels(what, score, expected):
        got = levels(what, score, *expected)
        if any(abs(one - wanted) > max(0.03 * wanted, 1e-4) for one, wanted in zip(got, expected.values())):
            fail(f"{what}: expected {expected}, heard {got}")

    three = {256: 1, 512: 0.5, 768: 0.25}
    check_levels("harmonics", EXACT.replace("sine\nenv", "sine\nharmonics 1 0.5 0.25\nenv") + "play 1500hz:1", three)
    check_levels("dynamics", EXACT + "track sine\nplay ff 1500hz:1\ntrack sine\nplay p 3000hz:1", {256: 1, 512: 0.4})
    check_levels("gain", EXACT + "play 1500hz:1\ntrack sine\ngain -20\nplay 3000hz:1", {256: 1, 512: 0.1})
    # The second order halves a filter's edge in power, and falls by 12 dB an octave.
    check_levels("lowpass", EXACT + "lowpass 1500\nplay 187.5hz+1500hz:1", {32: 1, 256: math.sqrt(0.5)})
    check_levels("highpass", EXACT + "highpass 1500\nplay 12000hz+1500hz:1", {2048: 1, 256: math.sqrt(0.5)})
    if levels("lowpass far out", EXACT + "lowpass 375\nplay 187.5hz+12000hz:1", 32, 2048)[1] > 1 / 500:
        fail("a lowpass lets through what is five octaves up")
    if levels("no harmonic above half the rate", EXACT.replace("sine\nenv", "sine\nharmonics 1 1\nenv") +
              "play 18000hz:1", 3072, 2048)[1] > 1e-4:
        fail("a harmonic of 36000 Hz is heard at 12000 Hz")

    left, _ = play("stretch", EXACT + "stretch 2.5\nplay 1500hz:1")
    bins = spectrum(left, RATE)
    if not 3.0 <= len(left) / RATE <= 3.1 or bins.index(max(bins)) not in (255, 256, 257) or max(bins[:240]) > 0.05:
        fail(f"stretched, 1.2 s of 1500 Hz are {len(left) / RATE} s of bin {bins.index(max(bins))}")
    left, right = play("reverb", EXACT + "reverb 2 0.5\nplay 1500hz:1")
    parts = [loudness(left[int(at * RATE):int((at + 0.4) * RATE)]) for at in (0.6, 1.3, 1.9, 2.7)]
    if abs(len(left) / RATE - 3.2) > 0.01 or left == right or parts != sorted(parts, reverse=True):
        fail(f"reverb: {len(left) / RATE} s, whose parts fall as {parts}")
    if not 1e-5 < parts[3] < parts[0] / 30:
        fail(f"reverb: its tail is {parts}")
    left, right = play("pan", EXACT + "pan -1\nplay 1500hz:1")
    if loudness(left) < 0.5 or max(map(abs, right)) > 1e-6:
        fail("what is on the left is heard on the right")
    left, right = play("rests", EXACT + "play -:1.5 1500hz:1/2 -:1/2 1500hz:1/2")
    for first, last, quiet in ((0, 1.5, True), (1.6, 1.9, False), (2.21, 2.5, True), (2.6, 2.9, False)):
        if (loudness(left[int(first * RATE):int(last * RATE)]) < 1e-6) != quiet:
            fail(f"rests: from {first} to {last} s it should {'not ' * quiet}be heard")
    ring = play("ring", EXACT.replace("sine\nenv", "sine\nring 0.1\nenv") + "play 1500hz:1")[0]
    if abs(loudness(ring[9600:14400]) / loudness(ring[14400:19200]) - 2) > 0.05:
        fail("what rings for 0.1 s should halve in 0.1 s")
    left, right = play("detune", EXACT.replace("sine\nenv", "sine\ndetune 100\nenv") + "play 3000hz:1")
    low, high = [max(range(4096), key=spectrum(side, 9600).__getitem__) for side in (left, right)]
    if (low, high) != (497, 527):  # 3000 Hz and half a half tone
        fail(f"detuned, left and right are in bins {low} and {high}")


def check_refusals():
    start = "# a comment\n\ninstrument a\ntrack a\nplay p C4:1 | Eb4+G4:1/2 -:1/2  # played\r\n"
    if sonic(write("good.score", start)).returncode != 0:
        fail("it refuses what it should play")
    (FOLDER / "marked.score").write_bytes(b"\xef\xbb\xbftitle \xff\n" + start.encode())
    if sonic("marked.score", "--spectrogram", "marked.png").returncode != 0:
        fail("it refuses an editor's mark in front, or a title that is no UTF-8")
    short = write("short.score", "tempo 1000\ninstrument a\nenvelope 0 0 1 0\ntrack a\nplay C4:1/64")
    if sonic(short, "--spectrogram", "short.png").returncode != 0:
        fail("it refuses the shortest note")
    sound = FOLDER / "kept.wav"
    sound.write_text("kept")
    no_length = "has no length from 1/64 to 256 beats"
    for line, words in (
            ("play H4:1", "'H4' is no pitch; write a letter from A to G"), ("play c4:1", "'c4' is no pitch"),
            ("play C:1", "'C' is no pitch"), ("play C4x:1", "'C4x' is no pitch"),
            ("play C10:1", "'C10' is out of range; octaves go from 0 to 9"), ("play C-1:1", "'C-1' is out of range"),
            ("play C99999999999:1", "out of range"), ("play Cb0:1", "'Cb0' is out of range; the lowest pitch is C0"),
            ("play 15.9hz:1", "out of range; pitches go from 16hz to 20000hz"), ("play 20001hz:1", "out of range"),
            ("play nanhz:1", "is no pitch"), ("play C4", "'C4' has no length; write PITCH:BEATS"),
            ("play C4:", no_length), ("play C4:0", no_length), ("play C4:-1", no_length), ("play C4:1/0", no_length),
            ("play C4:0/0", no_length), ("play C4:nan", no_length), ("play C4:inf", no_length),
            ("play C4:1/65", no_length), ("play C4:257", no_length), ("play C4:1/2/3", no_length),
            ("play :1", "lacks a pitch"), ("play C4+:1", "lacks a pitch"), ("play +C4:1", "is no pitch"),
            ("play", "there is nothing to play"), ("repeat", "'repeat' wants times (1 to 1000)"),
            ("repeat 2", "there is nothing to play"), ("repeat 0 C4:1", "'repeat' wants times"),
            ("repeat 1.5 C4:1", "a whole number of times"), ("repeat 1000 C4:4", "longer than 300 seconds"),
            ("repeat 1000 " + "+".join(["C4"] * 11) + ":1/64", "more than 10000 notes"),
            ("gain 13", "'gain' wants decibels (-60 to 12)"), ("gain nan", "'gain' wants"), ("gain", "'gain' wants"),
            ("pan 2", "'pan' wants place, left to right (-1 to 1)"), ("lowpass 19", "'lowpass' wants Hz (20 to 20000)"),
            ("highpass x", "'highpass' wants"), ("stretch 9", "'stretch' wants times as long (0.25 to 8)"),
            ("reverb 1", "'reverb' wants seconds (0.1 to 10), share of it (0 to 1)"), ("reverb 11 1", "'reverb' wants"),
            ("chorus 1", "a track has no 'chorus'; it has play, repeat, gain"), ("tempo 90", "put it above the first one"),
            ("track b", "there is no instrument 'b' above"), ("track", "'track' wants one word"),
            ("instrument a", "there is an instrument 'a' already"), ("instrument", "'instrument' wants one word"),
            ("title", "'title' wants words"), ("x" * 41, f"a track has no '{'x' * 40}...'"), ("\x1b[2J", "'?[2J'")):
        done = sonic(write("bad.score", start + line + "\nplay C4:1\n"), "-o", sound)
        if done.returncode != 1 or not done.stderr.startswith("sonic: bad.score:6: ") or words not in done.stderr:
            fail(f"{line}: ended with {done.returncode} and said {done.stderr}")
    for line, words in (("harmonics", "1 to 64 numbers"), ("harmonics 0 0", "one at least must be heard"),
                        ("harmonics 1 2", "loudness (0 to 1)"), ("envelope 1 1 1", "'envelope' wants attack seconds"),
                        ("envelope 1 1 1 21", "release seconds (0 to 20)"), ("ring 0", "'ring' wants seconds"),
                        ("detune 101", "'detune' wants cents"), ("play C4:1", "belong below 'track NAME'"),
                        ("tempo 9", "'tempo' wants beats a minute (10 to 1000)")):
        done = sonic(write("bad.score", "instrument b\n" + line), "-o", sound)
        if done.returncode != 1 or not done.stderr.startswith("sonic: bad.score:2: ") or words not in done.stderr:
            fail(f"{line}: ended with {done.returncode} and said {done.stderr}")
    for content, words in (("", "bad.score: there is no note in it; write 'play C4:1'"), ("# nothing", "no note in it"),
                           (SINE + "play -:4", "no note in it"), ("play C4:1", "bad.score:1: 'play' belongs below"),
                           ("\n" * 2**20 + "#", "larger than 1 MiB"), ("\0" * 100, "bad.score:1: "),
                           ("instrument a\n" + "track a\n" * 65, "bad.score:66: there are more than 64 tracks"),
                           (SINE + "lowpass 200\n" * 17, "bad.score:20: a track has at most 16 effects"),
                           (SINE + "stretch 8\n" * 16 + "play C4:1", "bad.score:3: with its effects this track is longer"),
                           (SINE + "repeat 590 C4:1\nreverb 5.1 0.5", "with its effects this track is longer")):
        done = sonic(write("bad.score", content), "-o", sound)
        if done.returncode != 1 or words not in done.stderr or done.stdout:
            fail(f"{content[-60:]}: ended with {done.returncode} and said {done.stderr}")
    if sound.read_text() != "kept":
        fail("it wrote to the sound although it refused the score")


def write(name, text):
    (FOLDER / name).write_text(text, newline="")
    return name


def check_files():
    good = write("good.score", SINE + "play C4:1/4")
    write("kept", "kept")
    (FOLDER / "link.wav").unlink(missing_ok=True)
    (FOLDER / "link.wav").hardlink_to(FOLDER / "good.score")
    for arguments, words in (([".", "-o", "a.wav"], "this is a folder"), (["none", "-o", "a.wav"], "cannot be opened"),
                             ([good, "-o", "no/such.wav"], "cannot write no/such.wav: it cannot be opened"),
                             ([good, "-o", "."], "cannot write ."), ([good, "-o", "/dev/full"], "cannot write /dev/full: "),
                             ([good, "-o", "a.wav", "--spectrogram", "no/such.png"], "cannot write no/such.png"),
                             ([good, "-o", "a.wav", "--spectrogram", "/dev/full"], "cannot write /dev/full: ")):
        done = sonic(*arguments)
        if done.returncode != 1 or words not in done.stderr or done.stdout:
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
    (FOLDER / "b.wav").unlink(missing_ok=True)
    sonic(good, "-o", "b.wav", "--spectrogram", "no/such.png")
    if (FOLDER / "b.wav").exists():
        fail("it left a sound although it refused where the picture should go")
    for link, target in (("to.wav", "new.wav"), ("to.png", "new.png")):
        (FOLDER / link).unlink(missing_ok=True)
        (FOLDER / target).unlink(missing_ok=True)
        (FOLDER / link).symlink_to(target)
    sonic(good, "-o", "to.wav", "--spectrogram", "to.png")
    if not all((FOLDER / link).is_symlink() and (FOLDER / link).stat().st_size > 0 for link in ("to.wav", "to.png")):
        fail("it wrote a file in place of a link to one that was not there")
    for arguments in ([], [good, "kept"], [good, "-o"], [good, "-o", ""], [good, "--workers", "0"], [good, "--what"],
                      [good, "--workers", "65"], [good, "--workers", "2x"], [good, "-o", "a.wav", "-o", "b.wav"],
                      [good, "-o", good], [good, "-o", "./good.score"], [good, "-o", "link.wav"],
                      [good, "--spectrogram", good], [good, "-o", "a.wav", "--spectrogram", "./a.wav"]):
        done = sonic(*arguments)
        if done.returncode != 2 or not done.stderr.startswith("usage:") or done.stdout:
            fail(f"{arguments}: ended with {done.returncode} and said {done.stderr}")
    if (FOLDER / good).read_text() != SINE + "play C4:1/4" or not sonic("--help").stdout.startswith("usage:"):
        fail("it overwrote the score, or gives no help")


def check_silence():
    """What cannot be heard is refused when it is found, on a line of its own."""
    silent = write("silent.score", EXACT.replace("0.01", "0.5") + "lowpass 20\n" * 4 + "play -:1 20000hz:1")
    for more in ([], ["--progress"]):
        done = sonic(silent, "-o", "silent.wav", *more)
        if done.returncode != 1 or "sonic: nothing can be heard; " not in done.stderr.splitlines()[-1][:30]:
            fail(f"silence: ended with {done.returncode} and said {done.stderr}")
    if (FOLDER / "silent.wav").exists():
        fail("it wrote a sound without any")


def check_progress():
    """On a terminal the bar goes from little to all, and there are as many nodes as were announced."""
    for score, bars_min, more in ((SCORES / "mill.score", 90, ["--spectrogram", "bar.png"]),
                                  (SCORES / "mill.score", 90, ["--workers", "3"]),
                                  (write("one.score", SINE + "play C4:1/4"), 2, [])):
        done = sonic(score, "-o", "bar.wav", "--progress", *more)
        bars = [(bar, int(share)) for bar, share in re.findall(r"\r\[( *=* *)\] (\d+) %", done.stderr)]
        shares = [share for _, share in bars]
        if done.returncode != 0 or not done.stderr.endswith("100 %\n") or len(bars) != done.stderr.count("\r"):
            fail(f"{score}: ended with {done.returncode} and drew {done.stderr}")
        if shares != sorted(set(shares)) or shares[-1] != 100 or len(shares) < bars_min:
            fail(f"{score}: the bar does not grow from nothing to all: {shares}")
        if any(bar.count("=") != share // 2 or len(bar) != 50 for bar, share in bars):
            fail(f"{score}: the bars do not say what the numbers do: {done.stderr}")
    ours, its = pty.openpty()
    subprocess.run([SONIC, "one.score", "-o", "bar.wav"], stdout=subprocess.DEVNULL, stderr=its, cwd=FOLDER, check=True,
                   timeout=SECONDS_MAX, env=ENVIRONMENT)
    os.close(its)
    if b"100 %" not in os.read(ours, 4096):
        fail("it draws no bar on a terminal")
    os.close(ours)


def check_memory():
    """Of signals that are a gigabyte together there are a few at a time."""
    chord = "+".join(f"{200 + 7 * i}hz" for i in range(100))
    score = write("many.score", "tempo 60\ninstrument a\nenvelope 0.1 0 1 1\ntrack a\n" + f"repeat 5 {chord}:4\n")
    pid = os.posix_spawn(SONIC, [SONIC, FOLDER / score, "-o", FOLDER / "many.wav", "--workers", "4"],
                         {**ENVIRONMENT, "ASAN_OPTIONS": "quarantine_size_mb=16"},
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    if status != 0 or used.ru_maxrss > 400 * 1024:
        fail(f"with 500 notes of 5 s it ended with {status} and used {used.ru_maxrss >> 10} MiB")


def main():
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "leaks").write_text(LEAKS_OF_OTHERS)
    check_same_bytes("lake", 36)
    check_same_bytes("mill", 18.6, ((), {"TROUPE_WORKERS": "3", "TROUPE_POLICY": "shared_queue"}),
                     ((), {"TROUPE_POLICY": "simulated"}))
    check_sine()
    check_sounds()
    check_refusals()
    check_files()
    check_silence()
    check_progress()
    check_memory()
    print("sonic: the same bytes with any number of workers, and the right ones")


main()
