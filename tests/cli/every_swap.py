"""At each system call of the commands that write, somebody else swaps a path: OUT or its new directory becomes a link
to a directory of theirs, goes away, or is another directory; an input becomes another file, or a link. Nothing is
written or changed where the link leads, and who says that all is well has written the right files.

    every_swap.sh                             a sample: MXFP4_SWAPS cases (24), drawn by MXFP4_SEED (1)
    MXFP4_SWAPS=all every_swap.sh             all of them, in MXFP4_JOBS processes (1)
    MXFP4_SWAPS=force:fsync:3:out_link ...    that one, as a failure prints it
"""
import collections
import os
import shutil
import stat
import subprocess
import sys

import jobs
from every_call import MODEL, SCENARIOS, calls_of, files_of, prepare, run, same, start

# What is run in the folder that holds OUT, before the call.
SWAPS = {
    "out_link": "mv out moved; ln -s ../victim out",
    "out_gone": "mv out moved",
    "out_other": "mv out moved; mkdir out; echo mine > out/thesis",
    "out_file": "mv out moved; echo mine > out",
    "new_link": 'for d in .out.*-new out/.mxfp4_repack-new; do [ -d "$d" ] && mv "$d" moved && ln -s "$VICTIM" "$d"; done',
    "new_file": 'for d in .out.*-new out/.mxfp4_repack-new; do [ -d "$d" ] && mv "$d" moved && ln -s "$VICTIM/secret" "$d"; done',
    "old_link": 'for d in .out.*-old out/.mxfp4_repack-old; do [ -d "$d" ] && mv "$d" moved && ln -s "$VICTIM" "$d"; done',
    "folder_link": 'for d in out/mxfp4_repack out/*rank*; do [ -d "$d" ] && mv "$d" moved && ln -s "$VICTIM" "$d"; done',
    "layer_link": 'for f in out/layer-* out/model-*; do [ -f "$f" ] && mv "$f" moved && ln -s "$VICTIM/secret" "$f"; done',
    "record_link": 'for f in out/.mxfp4_repack* out/*mxfp4_repack.json; do [ -f "$f" ] && mv "$f" moved && '
                   'ln -s "$VICTIM/secret" "$f"; done',
    # Same size, and the time put back.
    "weights": 'for f in "$MODEL"/*.safetensors; do cp -p "$f" "$f~"; printf x | dd of="$f~" bs=1 conv=notrunc '
               'seek=$(($(stat -c %s "$f") - 9)) 2>/dev/null; touch -r "$f" "$f~"; mv "$f~" "$f"; done',
    "weights_fifo": 'for f in "$MODEL"/*.safetensors; do mv "$f" "$f~"; mkfifo "$f"; done',
    "side_fifo": 'for f in "$MODEL"/*config*.json; do mv "$f" "$f~"; mkfifo "$f"; done',
    "side_folder": 'for f in "$MODEL"/*config*.json; do mv "$f" "$f~"; mkdir "$f"; done',
    "side_link": 'for f in "$MODEL"/*config*.json; do mv "$f" "$f~"; ln -s "$VICTIM/secret" "$f"; done',
}
OTHER_FILES = "exit 0 and other files"
INPUT = ("weights", "weights_fifo", "side_fifo", "side_folder", "side_link")


def look(root):
    """All that can be seen of the files below."""
    seen = {}
    for name, path in {".": root, **files_of(root)}.items():
        found = os.lstat(path)
        content = open(path, "rb").read() if stat.S_ISREG(found.st_mode) else None
        seen[name] = (content, found.st_mode, found.st_uid, found.st_gid, found.st_nlink)
    return seen


def make_victim():
    shutil.rmtree("victim", ignore_errors=True)
    os.makedirs("victim/folder", mode=0o700)
    for name in ("secret", "config.json", "layer-00000.safetensors", ".mxfp4_repack.progress"):
        with open(f"victim/{name}", "w") as file:
            file.write("theirs\n")
        os.chmod(f"victim/{name}", 0o600)


def all_cases():
    cases = []
    for name in SCENARIOS:
        start(name)
        for call, count in sorted(calls_of(name).items()):
            # The input's stamp is in what a run before has left.
            swaps = [swap for swap in SWAPS if swap not in INPUT or name in ("convert", "rest", "force", "force_rest")]
            cases += [f"{name}:{call}:{at}:{swap}" for at in range(1, count + 1) for swap in swaps]
    return cases


def in_last_look(name, call, at):
    """Whether this is one of the two calls that look at the last file. The folders above it are open by then: whoever
    gives the name of one to a link comes too late."""
    start(name)
    calls_of(name)
    with open("calls", errors="replace") as file:
        calls = [line.split(" ", 1)[0] for line in file]
    counted = collections.Counter(calls)
    last = [(calls[-1], counted[calls[-1]]), (calls[-2], counted[calls[-2]] - (calls[-1] == calls[-2]))]
    return (call, int(at)) in last


def judge(case):
    name, call, at, swap = case.split(":")
    if swap in INPUT:
        os.rename(MODEL, "kept")  # whose files' change times are in what a run before has left
        shutil.copytree("kept", MODEL)
    scenario = start(name)
    make_victim()
    before = look("victim")
    hit = os.path.abspath("hit")
    if os.path.exists(hit):
        os.remove(hit)
    try:
        done = run_swapped(scenario, call, at, swap, hit)
        wrong = judge_left(scenario, done, swap) if os.path.exists(hit) else jobs.MISSED
        if wrong == OTHER_FILES and swap == "folder_link" and moved_back_is(scenario.want) and in_last_look(name, call, at):
            wrong = None
    except subprocess.TimeoutExpired as waits:
        done, wrong = subprocess.CompletedProcess(waits.cmd, -1, "", ""), "waits for ever"
    if wrong != jobs.MISSED and look("victim") != before:
        wrong = "the other directory is not as it was"
    if swap in INPUT:
        shutil.rmtree(MODEL)
        os.rename("kept", MODEL)
    if wrong in (None, jobs.MISSED):
        return wrong
    with open(hit, errors="replace") as file:
        return f"{file.read().strip()}\n  exit {done.returncode}: {done.stderr.strip()}\n  {wrong}"


def run_swapped(scenario, call, at, swap, hit):
    return run(scenario.command, scenario.place, FAULT_AT=f"{call}:{at}:run", FAULT_PATH=os.getcwd(), FAULT_HIT=hit,
               FAULT_RUN=f"exec 2>/dev/null; cd \"$WORK\"; {SWAPS[swap]}", WORK=os.path.abspath("work"), MODEL=MODEL,
               VICTIM=os.path.abspath("victim"))


def judge_left(scenario, done, swap):
    if done.returncode not in (0, 3, 5):
        return "another exit code"
    errors = [line for line in done.stderr.splitlines() if line.startswith("mxfp4-repack: error: ")]
    if len(errors) != (done.returncode != 0):
        return "not one error line"
    if swap == "out_other" and os.path.exists("work/out/thesis") and look("work/out").keys() != {".", "thesis"}:
        # The folder is new, and the program's if it took the name after the swap.
        return f"files beside theirs: {sorted(look('work/out'))}"
    if swap == "out_other" and os.path.exists("work/moved") and not os.path.exists("work/out/thesis"):
        return "their file is gone"
    if swap == "out_file" and os.path.isfile("work/out") and open("work/out").read() != "mine\n":
        return "their file is another"
    for folder, folders, names in os.walk("work"):
        for one in names:
            path = os.path.join(folder, one)
            if not os.path.islink(path) and open(path, "rb").read() == b"theirs\n":
                return f"what a link leads to was copied: {path}"
    return judge_success(scenario, done, swap) if done.returncode == 0 else None


def judge_kept_links(scenario, done):
    found = files_of("work/out", leftovers=False)
    links = [name for name, path in found.items() if os.path.islink(path)]
    for name in links:
        os.remove(found[name])
    if not links or not same("work/out", scenario.want):
        return "exit 0 and other files"
    return None if "warning: " in done.stderr else f"left without a word: {links}"


def judge_success(scenario, done, swap):
    if swap in ("layer_link", "record_link"):
        return None  # who can write to OUT can do that after the end, too; `verify` sees the files
    # A swap behind the last look is nobody's fault; one that found nothing changed nothing.
    places = [place for place in ("work/out", "work/moved") if os.path.isdir(place)]
    if any(same(place, scenario.want) for place in places):
        return None
    if swap == "folder_link" and "--force" in scenario.command:
        # A link in the old result is not this program's: it is kept, and the user hears of it.
        return judge_kept_links(scenario, done)
    if swap == "out_gone" and "--shard" in scenario.command:
        # The other shard is in the folder that went away before this one began.
        both = set(files_of("work/out", leftovers=False)) | set(files_of("work/moved", leftovers=False))
        return None if both == set(files_of(scenario.want)) else "exit 0 and neither folder has the shard"
    if swap in INPUT:
        # Replaced before it was looked at: the result is the other model's, as a whole.
        os.rename("work", "first")
        start(next(name for name in SCENARIOS if SCENARIOS[name] is scenario))
        again = run(scenario.command, scenario.place)
        equal = again.returncode == 0 and same("first/out", "work/out")
        shutil.rmtree("first")
        return None if equal else "exit 0 and a mixture"
    return OTHER_FILES


def moved_back_is(want):
    """Whether all is as it should be, but for a link in the place of the folder that was moved."""
    if not os.path.islink("work/out/mxfp4_repack") or not os.path.isdir("work/moved"):
        return False
    os.remove("work/out/mxfp4_repack")
    os.rename("work/moved", "work/out/mxfp4_repack")
    return same("work/out", want)


if __name__ == "__main__":
    sys.exit(jobs.main("MXFP4_SWAPS", 24, prepare, all_cases, judge))
