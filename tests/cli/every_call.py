"""Every system call of the commands that write fails once, each with the errors that it may give, and every
allocation; what is left is judged by one table, and by what the same command makes of it afterwards.

    every_call.sh                          a sample: MXFP4_CALLS cases (240), drawn by MXFP4_SEED (1)
    MXFP4_CALLS=all every_call.sh          all of them: of allocations one in MXFP4_APART (97), by the seed
    MXFP4_JOBS=16 ...                      in so many processes
    MXFP4_CALLS=force:fsync:3:EIO ...      that one, as a failure prints it
"""

import collections
import filecmp
import os
import re
import shutil
import subprocess
import sys

import jobs

BIN, FAULTS, TESTDATA = (os.environ[name] for name in ("BIN", "FAULTS", "TESTDATA"))
MEMORY_FAULTS = os.environ.get("MEMORY_FAULTS", "")  # empty: a sanitizer has an allocator of its own
APART = int(os.environ.get("MXFP4_APART", "97"))  # positions between two allocations that fail
MODEL = os.path.abspath("model")  # a copy, so that its reads fail too
FLAGS = ["--backend", "MARLIN", "--arch", "sm80", "--threads", "1"]
CONVERT = [BIN, "convert", MODEL, "-o", "out", *FLAGS]

READ = ["EIO", "EINTR", "short", "zero"]
WRITE = ["ENOSPC", "EIO", "EINTR", "EDQUOT", "EFBIG", "short", "zero"]
LOOK = ["EIO", "ESTALE", "EACCES"]
SYNC = ["EIO", "ENOSPC", "EINTR"]
ERRORS = {
    "open": ["EIO", "EACCES", "EMFILE", "ESTALE"], "create": ["ENOSPC", "EACCES", "EROFS", "EMFILE"],
    "read": READ, "pread": READ, "preadv": READ, "write": WRITE, "pwritev": WRITE,
    "fsync": SYNC, "fdatasync": SYNC, "rename": ["EIO", "EACCES", "ENOSPC"],
    "exchange": ["EINVAL", "ENOSYS", "EXDEV", "EIO", "EBUSY"], "mkdir": ["ENOSPC", "EACCES", "EROFS"],
    "unlink": ["EIO", "EACCES", "EBUSY"], "remove": ["EIO", "EACCES"], "rmdir": ["EIO", "EBUSY"],
    "stat": LOOK, "lstat": LOOK, "fstat": ["EIO", "ESTALE"], "fstatat": LOOK,
    "opendir": ["EIO", "EACCES", "EMFILE"], "readdir": ["EIO"], "flock": ["ENOLCK", "EINTR", "EAGAIN"],
    "mmap": ["ENOMEM"], "fchmod": ["EPERM", "EIO"], "fchown": ["EPERM"], "access": ["EACCES", "EIO"],
    "readlink": ["EIO", "EACCES"], "statx": ["ENOSYS", "EIO"],
}

Case = collections.namedtuple("Case", "scenario call position error")
# What a command does: how OUT is prepared, what is run, what mends it, what it ends with, and what a failure (exit 3
# or 5) leaves.
Scenario = collections.namedtuple("Scenario", "begin command mend want left")


def quietly(*command, cwd=".", code=0, **variables):
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == code, (command, done.returncode, done.stderr)


def beside(out):
    return os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.mxfp4_repack-new")


def prepare():
    shutil.copytree(os.path.join(TESTDATA, "ingest/gptoss_hf"), MODEL)
    quietly(*CONVERT[:-len(FLAGS) - 1], "whole", *FLAGS)
    quietly(*CONVERT[:-len(FLAGS) - 1], "rest", *FLAGS, "--include-rest", "--tp-size", "2")
    quietly(*CONVERT[:-len(FLAGS) - 1], "old", *FLAGS, "--compress", "none")
    quietly(BIN, "unpack", "whole", "-o", "loaded", "--threads", "1")
    quietly(BIN, "unpack", "whole", "-o", "published", "--as-published", "--threads", "1")
    quietly(*CONVERT[:-len(FLAGS) - 1], "ranks", *FLAGS, "--tp-size", "2")
    quietly(*CONVERT[:-len(FLAGS) - 1], "rank", *FLAGS, "--tp-size", "2", "--rank", "1")
    shutil.copytree("whole", "hurt")
    for name in os.listdir("hurt"):
        if name.startswith("layer-00001") or name == "model.safetensors.index.json":
            os.remove(f"hurt/{name}")
    for shard in "01":
        quietly(*CONVERT[:-len(FLAGS) - 1], "shards", *FLAGS, "--shard", f"{shard}/2")
        if shard == "0":
            shutil.copytree(beside("shards"), beside("shard"))
    # A run that was killed when its first layer was complete.
    for at in range(1, 200):
        shutil.rmtree(beside("cut"), ignore_errors=True)
        done = subprocess.run([*CONVERT[:-len(FLAGS) - 1], "cut", *FLAGS], capture_output=True,
                              env={**os.environ, "LD_PRELOAD": FAULTS, "FAULT_KILL_AT": str(at)})
        result = beside("cut") + "/result"
        files = os.listdir(result) if os.path.isdir(result) else []
        if done.returncode == -9 and sum(name.startswith("layer-") for name in files) == 1:
            return
    raise AssertionError("no kill left one layer")


def plain(extra=(), mend="--resume"):
    return [*CONVERT, *extra], [*CONVERT, *extra, mend]


UNPACK = [BIN, "unpack", "../whole", "-o", "out", "--threads", "1"]
PUBLISHED = [*UNPACK, "--as-published"]
# The result may be in place, with a warning of what lies beside it, which goes by hand.
AGAIN = ["sh", "-c", '[ ! -e out ] || exec rm -rf .out.mxfp4_repack-new; exec "$@"', "sh"]
SCENARIOS = {
    "convert": Scenario(None, *plain(), "whole", "unfinished"),
    "rest": Scenario(None, *plain(["--include-rest", "--tp-size", "2"]), "rest", "unfinished"),
    "resume": Scenario("cut", *plain(["--resume"], "-q"), "whole", "unfinished"),
    "force": Scenario("old", *plain(["--force"], "-q"), "whole", "old"),
    "force_rest": Scenario("rest", *plain(["--force"], "-q"), "whole", "old"),
    "ranks": Scenario("rank", *plain(["--tp-size", "2", "--resume"], "-q"), "ranks", "kept"),
    "repair": Scenario("hurt", *plain(["--resume"], "-q"), "whole", "kept"),
    "unpack": Scenario(None, UNPACK, AGAIN + UNPACK, "loaded", "nothing"),
    "published": Scenario(None, PUBLISHED, AGAIN + PUBLISHED, "published", "nothing"),
    "shard": Scenario("shard", [*CONVERT, "--shard", "1/2"], [*CONVERT, "--shard", "1/2", "--resume"], "shards",
                      "unfinished"),
    "finalize": Scenario("shards", [BIN, "finalize", "out", "-q"], [BIN, "finalize", "out", "-q"], "whole", "records"),
}

def files_of(root):
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*names, *folders]:
            path = os.path.relpath(os.path.join(folder, name), root)
            # Of a shard that was killed: finalize removes it.
            if ".tmp-" not in name or "mxfp4_repack-new" not in root:
                found[path] = os.path.join(root, path)
    return found


def same(a, b):
    one, other = files_of(a), files_of(b)
    return one.keys() == other.keys() and all(
        os.path.isdir(one[name]) or filecmp.cmp(one[name], other[name], shallow=False) for name in one)


def start(name):
    scenario = SCENARIOS[name]
    shutil.rmtree("work", ignore_errors=True)
    os.mkdir("work")
    for there, out in ((scenario.begin, "work/out"), (beside(scenario.begin or ""), beside("work/out"))):
        if scenario.begin and os.path.isdir(there):
            shutil.copytree(there, out, symlinks=True)
    return scenario


def made(name, out):
    """What the scenario makes: a shard's files stay beside OUT."""
    return beside(out) + "/result" if name == "shard" else out


def run(command, **variables):
    # Only paths below this directory, so that the system's own files are spared; and the model.
    options = os.environ.get("ASAN_OPTIONS", "")
    return subprocess.run(command, cwd="work", capture_output=True, text=True, timeout=120, env={
        **os.environ, "LD_PRELOAD": FAULTS, "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0", **variables})


def allocations(scenario):
    """How many its command makes; its files are as before it."""
    if not MEMORY_FAULTS:
        return 0
    number = os.path.abspath("number")
    shutil.copytree("work", "kept", symlinks=True)
    run(scenario.command, LD_PRELOAD=MEMORY_FAULTS, FAULT_ALLOCATIONS=number)
    shutil.rmtree("work")
    os.rename("kept", "work")
    with open(number) as file:
        return int(file.read())


def fail(case):
    """Runs the command with this fault; whether it came to pass, and where."""
    scenario = SCENARIOS[case.scenario]
    if case.call == "allocate":
        faults = {"LD_PRELOAD": MEMORY_FAULTS, "FAULT_ALLOCATION": str(case.position)}
        return run(scenario.command, **faults), "an allocation"
    hit = os.path.abspath("hit")
    if os.path.exists(hit):
        os.remove(hit)
    done = run(scenario.command, FAULT_AT=f"{case.call}:{case.position}:{case.error}",
               FAULT_PATH=os.getcwd(), FAULT_HIT=hit)
    if not os.path.exists(hit):
        return done, None
    with open(hit, errors="replace") as file:
        return done, file.read().strip()


def calls_of(name):
    """How many calls of each kind the command makes on paths below this directory; its files are as behind it."""
    log = os.path.abspath("calls")
    if os.path.exists(log):
        os.remove(log)
    done = run(SCENARIOS[name].command, FAULT_CALLS=log, FAULT_PATH=os.getcwd())
    assert done.returncode == 0, (name, done.stderr)
    with open(log, errors="replace") as file:
        return collections.Counter(line.split(" ", 1)[0] for line in file)


def all_cases():
    cases = []
    for name in SCENARIOS:
        scenario = start(name)
        for at in range(int(os.environ.get("MXFP4_SEED", "1")), allocations(scenario) + 1, APART):
            cases.append(Case(name, "allocate", at, "ENOMEM"))
        for call, count in calls_of(name).items():
            cases += [Case(name, call, at, error) for at in range(1, count + 1) for error in ERRORS.get(call, [])]
    return [":".join(map(str, case)) for case in cases]


def judge(case):
    """What is wrong with what the case left; None if nothing is. Or MISSED."""
    scenario = start(case.scenario)
    done, where = fail(case)
    if where is None:
        return jobs.MISSED
    # A library that may not throw ends the program, as a kill does: without a hint, and temporaries stay.
    killed = case.call == "allocate" and done.returncode == 5 and "hint: " not in done.stderr
    wrong = judge_left(case.scenario, scenario._replace(left="killed") if killed else scenario, done)
    if wrong is None:
        again = run(scenario.mend, LD_PRELOAD="")  # nothing fails; a shell may not take a library with sanitizers
        if again.returncode != 0:
            wrong = f"mending ends with {again.returncode}: {again.stderr.strip()}"
        elif not same(made(case.scenario, "work/out"), made(case.scenario, scenario.want)):
            wrong = "mended, but other files"
        elif len(os.listdir("work")) != 1:
            wrong = f"mended, but left {os.listdir('work')}"
    return wrong and f"{where}\n  exit {done.returncode}: {done.stderr.strip()}\n  {wrong}"


def judge_left(name, scenario, done):
    out = files_of("work/out")
    errors = [line for line in done.stderr.splitlines() if line.startswith("mxfp4-repack: error: ")]
    if done.returncode == 0:
        if not same(made(name, "work/out"), made(name, scenario.want)):
            return "exit 0 and other files"
        if errors:
            return "exit 0 and an error"
        if len(os.listdir("work")) != 1 and "warning: " not in done.stderr:
            return f"left without a word: {os.listdir('work')}"
        return None
    if done.returncode not in (3, 5):
        return "another exit code"
    if len(errors) != 1 or not re.search(r"^ \.: |/work: |out|whole|model|mxfp4", errors[0][20:]):
        return "not one error line that names a file"
    if scenario.left == "unfinished" and out:
        return f"a failure, and OUT holds something: {list(out)}"
    if scenario.left == "old" and not same("work/out", scenario.begin):
        return "a failure, and the old result is not whole"
    if scenario.left == "kept" and not all(
            os.path.isdir(path) or name in out and filecmp.cmp(path, out[name], shallow=False)
            for name, path in files_of(scenario.begin).items()):
        return "a failure, and files of the old result are gone"
    if scenario.left == "nothing" and any(os.path.isfile(path) for path in out.values()):
        return f"a failure, and files: {list(out)}"
    if scenario.left == "records" and not any(name.endswith(".progress") for name in files_of(beside("work/out"))):
        return "a failure, and the shards' records are gone"
    return None


def draw(names, number, drawn):
    """As many of each scenario and call, so that rare calls are not drowned by reads."""
    groups = collections.defaultdict(list)
    for name in names:
        groups[tuple(name.split(":")[:2])].append(name)
    for group in groups.values():
        drawn.shuffle(group)
    queue, names = list(groups.values()), []
    drawn.shuffle(queue)
    while queue and len(names) < number:
        queue = [group for group in queue if group]
        names += [group.pop() for group in queue][:number - len(names)]
    return names


def judge_named(name):
    scenario, call, position, error = name.split(":")
    return judge(Case(scenario, call, int(position), error))


if __name__ == "__main__":
    sys.exit(jobs.main("MXFP4_CALLS", 240, prepare, all_cases, judge_named, draw))
