"""How often one operation changes a word that all threads share.

Usage: check.py http|tells|steals PROGRAM, or check.py names

callgrind counts how often each instruction runs. An instruction that locks its word is either in a
function of COMMON, whose words all workers of a pool change, or in one of OWN, whose words belong to
one connection, actor, operation or worker. An instruction in a function of neither list that runs for
each operation is a failure: say there whose word it is. Calls that lock a mutex of the C library count as two changes.

"steals" runs the program without callgrind: each steal of a worker takes several lines from another."""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS_MAX = 240
SKIPPED = 77
RUNS_MOST = 4  # the best of them counts: how many events one look finds depends on the machine
RARE = 0.02  # of an operation; such instructions are not judged
UNKNOWN_MOST = 0.25  # of an operation; timers and searches for deadlocks come by the clock

# Parts of functions' names, each with the reason.
COMMON = {
    "sched::work_stealing::take_io": "the door of the poller",
    "sched::work_stealing::leave_door": "the door of the poller",
    "sched::work_stealing::take_what_came": "the count of outstanding work",
    "sched::work_stealing::show_busy": "the pool's words",
    "sched::work_stealing::become_idle": "the count of outstanding work",
    "sched::work_stealing::steal_from": "the count of outstanding work",
    "sched::work_stealing::take_list": "the count of outstanding work",
    "sched::work_stealing::submit": "the count of outstanding work, and the inbox",
    "sched::work_stealing::take_inbox": "the inbox",
    "sched::work_stealing::housekeeping": "the inbox",
    "actor_system::enter_gate": "the gate of the actor system",
    "actor_system::leave": "the gate of the actor system",
    "sched::basic_waiting_operations": "the number of operations that wait",
    "runtime_core::hold": "the count of outstanding work",
    "runtime_core::release": "the count of outstanding work",
    "actor::gate": "the gate of the actor system",
    "basic_small_mutex": "a mutex that several threads wanted",
}
OWN = {
    "io::(anonymous namespace)::readiness_reactor::": "the mutex of a descriptor's slot",
    "io::limited": "a read's own words",
    "http::connection": "the references of a connection's part",
    "io::reactor::enter_unshared": "a worker's count of waits",
    "actor::send_from_afar": "the mailbox of the receiver",
    "actor::(anonymous namespace)::collect": "the mailbox of the receiver",
    "actor::(anonymous namespace)::deactivate": "the mailbox of an actor",
    "actor::(anonymous namespace)::deliver": "the mailbox of the receiver",
    "sched::work_stealing::rest": "the parker of a worker",
    "sched::work_stealing::enter_as_searcher": "the lock of a victim",
    "sched::biased_lock": "the lock of a worker",
    "sched::worker::": "the wake hints of a worker",
    "sched::wake_hint_queue": "the wake hints of a worker",
}
# Searches by the clock: a slow machine has more of them for each operation.
BY_CLOCK = ("actor::waiting_lists::for_each_call",)
# A full fence in the form of a locked instruction: it changes no word.
FENCE = re.compile(r"lock or[lq]?\s+\$0x0,\S*\(%rsp\)")
LOCKED = re.compile(r"lock |xchg\s+[^,]*,?[^,]*\(")

# Kind: the arguments of a short and of a long run, the operations of one unit, the most changes.
KINDS = {"http": (10, 60, 64, 1.0), "tells": (1000, 21000, 1, 0.0)}


def fail(text):
    print(f"common_words: {text}")
    sys.exit(1)


def locked_instructions(program):
    """{address: (function, text)} of the instructions that lock a word."""
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", program], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found, function = {}, ""
    for line in text.splitlines():
        begins = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if begins:
            function = begins[1]
            continue
        instruction = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if instruction and LOCKED.match(instruction[2]) and not FENCE.match(instruction[2]):
            found[int(instruction[1], 16)] = function, instruction[2]
    return found


class Profile:
    """What callgrind wrote: how often each instruction of the program ran, and each function called
    each other one."""

    def __init__(self, path, program):
        self.runs, self.calls = collections.Counter(), collections.Counter()
        self.names = {"ob": {}, "fn": {}}
        self.object = self.function = self.callee = ""
        self.address, self.after_call = 0, 0
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.read(line.rstrip("\n"), program)

    def name(self, kind, text):
        number, _, name = text.partition(" ")
        if name:
            self.names[kind][number] = name
        return self.names[kind].get(number, number)

    def read(self, line, program):
        key, equals, text = line.partition("=")
        if equals and key == "ob":
            self.object = self.name("ob", text)
        elif equals and key == "cob":
            self.name("ob", text)
        elif equals and key == "fn":
            self.function = self.name("fn", text)
        elif equals and key == "cfn":
            self.callee = self.name("fn", text)
        elif equals and key == "calls":
            self.calls[self.function, self.callee] += int(text.split()[0])
            self.after_call = 1
        else:
            self.read_cost(line.split(), program)

    def read_cost(self, words, program):
        if len(words) != 3 or not words[2].isdigit() or not re.match(r"(0x|[+*-])", words[0]):
            return
        if words[0] != "*":
            moved = words[0][0] in "+-"
            self.address = self.address + int(words[0]) if moved else int(words[0], 16)
        if self.after_call:  # the cost of the callee
            self.after_call = 0
        elif self.object == program:
            self.runs[self.address] += int(words[2])


def profile(program, kind, number, folder):
    path = os.path.join(folder, f"{kind}.{number}")
    done = subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--fair-sched=yes",
                           f"--callgrind-out-file={path}", program, kind, str(number)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        fail(f"the program ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return Profile(path, program)


def listed(function, names):
    return any(name in function for name in names)


def changes(program, kind):
    """{(function, instruction): changes of its word for each operation}"""
    short, long, operations, _ = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        few, many = (profile(program, kind, number, folder) for number in (short, long))
    units = (long - short) * operations
    found = collections.Counter()
    for address, site in locked_instructions(program).items():
        found[site] += (many.runs[address] - few.runs[address]) / units
    for (caller, callee), times in many.calls.items():
        if re.match(r"_*pthread_mutex_(try)?lock", callee):
            found[caller, "std::mutex"] += 2 * (times - few.calls[caller, callee]) / units
    return found


def judge(kind, program):
    """Prints the changes, and returns those of common words; an instruction of no list is a failure."""
    total, unknown = 0.0, []
    for (function, instruction), times in changes(program, kind).most_common():
        if times < RARE:
            break
        if listed(function, BY_CLOCK):
            continue
        is_common = listed(function, COMMON) or instruction == "std::mutex"
        is_known = is_common or listed(function, OWN)
        print(f"{times:6.2f} {'common' if is_common else 'own' if is_known else '?'}  "
              f"{function[:100]}  {instruction}")
        total += times if is_common else 0
        if not is_known and times > UNKNOWN_MOST:
            unknown.append(function)
    if unknown:
        fail("whose word do these change? Say it in check.py: " + "; ".join(sorted(set(unknown))))
    print(f"common_words: {total:.2f} changes of common words for each operation")
    return total


def check(kind, program):
    if shutil.which("valgrind") is None or shutil.which("objdump") is None:
        print("common_words: skipped: needs valgrind")
        sys.exit(SKIPPED)
    most = KINDS[kind][3]
    for _ in range(RUNS_MOST):
        if judge(kind, program) <= most + RARE:
            return
    fail(f"at most {most} changes of common words for each operation")


STEALS_MOST = 0.02  # a request
# A worker steals what would take its owner long enough, and a slow machine needs longer for the same
# requests: more steals than that count only if they also come oftener.
STEALS_EACH_MS_MOST = 2.5
STEAL_RUNS = 10  # the best of them counts: a worker that has lost its processor is stolen from


def check_steals(program):
    rounds, operations = 100, KINDS["http"][2]
    for _ in range(STEAL_RUNS):
        said = subprocess.run([program, "http", str(rounds)], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=SECONDS_MAX).stdout
        steals, milliseconds = (float(word) for word in said.split()[1::2])
        each, often = steals / (rounds * operations), steals / milliseconds
        print(f"common_words: {each:.4f} steals for each request, {often:.2f} in a millisecond")
        if each < STEALS_MOST or often < STEALS_EACH_MS_MOST:
            return
    fail(f"{STEALS_MOST} steals for each request, or more, and {STEALS_EACH_MS_MOST} in a "
         "millisecond, or more")


def check_names():
    """Each name of the lists is a function of the sources, or of their parts."""
    root = os.environ["TROUPE_SOURCE_DIR"]
    text = subprocess.run(["grep", "-rhoE", "[A-Za-z_]+", os.path.join(root, "src"),
                           os.path.join(root, "include")], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    words = set(text.split())
    for name in [*COMMON, *OWN, *BY_CLOCK]:
        for part in re.findall(r"[A-Za-z_]+", name.replace("(anonymous namespace)", "")):
            if not any(part == word or word.startswith(part) for word in words):
                fail(f"the sources have no {part} ({name})")


def main():
    if sys.argv[1] == "names":
        return check_names()
    if sys.argv[1] == "steals":
        return check_steals(sys.argv[2])
    return check(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
