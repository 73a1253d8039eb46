"""A power cut at each step of the commands that write. What was not synced by then may be lost: each write by
itself, torn or whole, and of each folder's changes all from some point on. What is left is judged, and mended.

    power_cut.sh                        a sample: MXFP4_CUTS cuts (48), drawn by MXFP4_SEED (1)
    MXFP4_CUTS=all power_cut.sh         every step, with MXFP4_DRAWS (16) draws of what is lost at each
    MXFP4_CUTS=force:17:3 power_cut.sh  the cut before step 17 of this scenario with draw 3, as a failure prints it
    MXFP4_JOBS=16 ...                   in so many processes
"""
import collections
import filecmp
import os
import random
import shutil
import subprocess
import sys

import jobs
from every_call import BIN, SCENARIOS, files_of, made, prepare, same, start

TRACE = os.environ["TRACE"]
NOTHING, EVERYTHING = 0, 1  # draws: all that was not synced is lost, and nothing is

Node = collections.namedtuple("Node", "number folder")  # number: of its making, since inodes are used again
Change = collections.namedtuple("Change", "step folders entries")  # entries: ((folder, name), node or None)
Write = collections.namedtuple("Write", "step node offset data")
Trace = collections.namedtuple("Trace", "root old changes writes syncs steps")  # syncs: (step, node)


class Recorder:
    """Follows a trace, as the files were while it was made."""

    def __init__(self, base):
        self.base, self.made, self.step = base, 0, 0
        self.names, self.inodes, self.old = {}, {}, {}
        self.changes, self.writes, self.syncs = [], [], []
        self.root = self.known(base)
        for folder, folders, files in os.walk(base):
            for name in [*folders, *files]:
                path = os.path.join(folder, name)
                node = self.known(path)
                if not node.folder:
                    self.old[node] = open(path, "rb").read()
        self.names_at_first = dict(self.names)

    def known(self, path):
        return self.add(os.stat(path).st_ino, path, os.path.isdir(path))

    def add(self, inode, path, folder):
        self.made += 1
        node = self.names[path] = self.inodes[inode] = Node(self.made, folder)
        return node

    def place(self, path):
        return self.names[os.path.dirname(path)], os.path.basename(path)

    def change(self, *entries):
        folders = {place[0] for place, _ in entries}
        self.changes.append(Change(self.step, folders, entries))

    def move(self, a, b, exchanged):
        """Paths below a folder that moves move with it."""
        moved = {}
        for here, there in ((a, b), (b, a)) if exchanged else ((a, b),):
            for path in [path for path in self.names if path == here or path.startswith(here + "/")]:
                moved[there + path[len(here):]] = self.names[path]
        first, second = self.names[a], self.names.get(b)
        places = self.place(a), self.place(b)
        for path in [path for path in self.names for top in (a, b) if path == top or path.startswith(top + "/")]:
            self.names.pop(path, None)
        self.names.update(moved)
        self.change((places[0], second if exchanged else None), (places[1], first))

    def take(self, call, words, data):
        inside = any(word.startswith(self.base + "/") for word in words[-1].split("\t"))
        if call == "write":
            node = self.inodes.get(int(words[0]))
            if node:
                self.writes.append(Write(self.step, node, int(words[1]), data))
        elif call == "sync":
            node = self.inodes.get(int(words[0]))
            if node:
                self.syncs.append((self.step, node))
        elif not inside:
            return
        elif call in ("create", "folder"):
            inode, path = words[0].split(" ", 1) if len(words) == 1 else words
            path = os.path.normpath(path)
            node = self.add(int(inode), path, call == "folder")
            self.change((self.place(path), node))
        elif call == "remove":
            path = os.path.normpath(words[0])
            self.change((self.place(path), None))
            self.names.pop(path)
        else:
            a, b = (os.path.normpath(path) for path in words[0].split("\t"))
            self.move(a, b, call == "exchange")
        self.step += 1


def read_trace(name):
    """The files before, and what the scenario's command does to them."""
    scenario = start(name)
    log = os.path.abspath("trace")
    if os.path.exists(log):
        os.remove(log)
    recorder = Recorder(os.path.abspath("work"))
    options = os.environ.get("ASAN_OPTIONS", "")
    done = subprocess.run(scenario.command, cwd="work", capture_output=True, text=True, timeout=120, env={
        **os.environ, "LD_PRELOAD": TRACE, "FAULT_TRACE": log, "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0"})
    assert done.returncode == 0, (name, done.stderr)
    with open(log, "rb") as file:
        while line := file.readline():
            call, rest = line.decode(errors="surrogateescape").rstrip("\n").split(" ", 1)
            if call == "write":
                words = rest.split(" ")
                recorder.take(call, words, file.read(int(words[2])))
            elif call in ("create", "folder"):
                recorder.take(call, rest.split(" ", 1), b"")
            else:
                recorder.take(call, [rest], b"")
    tree = {}
    for path, node in recorder.names_at_first.items():
        if path != recorder.base:
            tree[recorder.names_at_first[os.path.dirname(path)], os.path.basename(path)] = node
    return Trace(recorder.root, (tree, recorder.old), recorder.changes, recorder.writes, recorder.syncs, recorder.step)


def left_of(trace, step, draw):
    """The names and contents that a cut before `step` leaves."""
    drawn = random.Random(f"{step} {draw}")
    synced = collections.defaultdict(int)  # node: everything before this step is on the device
    for at, node in trace.syncs:
        if at < step:
            synced[node] = at
    tree, old = dict(trace.old[0]), dict(trace.old[1])
    pending = collections.defaultdict(list)
    done = [change for change in trace.changes if change.step < step]
    for change in done:
        for folder in change.folders:
            if change.step >= synced[folder]:
                pending[folder].append(change.step)
    # Each folder by itself: often all or nothing, so that one folder's changes are there and another's are not.
    kept_to = {folder: {NOTHING: 0, EVERYTHING: len(steps)}.get(
        draw, drawn.choice((0, len(steps), drawn.randint(0, len(steps))))) for folder, steps in pending.items()}
    lost = {at for folder, steps in pending.items() for at in steps[kept_to[folder]:]}
    for change in done:
        if change.step in lost:
            continue
        for place, node in change.entries:
            if node is None:
                tree.pop(place, None)
            else:
                tree[place] = node
    content = {node: bytearray(data) for node, data in old.items()}
    for write in trace.writes:
        if write.step >= step:
            continue
        data = write.data
        if write.step >= synced[write.node]:
            part = {NOTHING: 0.0, EVERYTHING: 1.0}.get(draw, drawn.choice((0.0, 0.5, 1.0)))
            data = data[:int(len(data) * part)]
        if data:
            file = content.setdefault(write.node, bytearray())
            file.extend(bytes(max(0, write.offset + len(data) - len(file))))
            file[write.offset:write.offset + len(data)] = data
    return tree, content


def lay_out(trace, tree, content):
    shutil.rmtree("work")
    os.mkdir("work")

    def fill(folder, path):
        for (inside, name), node in tree.items():
            if inside != folder:
                continue
            there = os.path.join(path, name)
            if node.folder:
                os.mkdir(there)
                fill(node, there)
            else:
                with open(there, "wb") as file:
                    file.write(content.get(node, b""))

    fill(trace.root, "work")


def run(command):
    return subprocess.run(command, cwd="work", capture_output=True, text=True, timeout=120)


def verify(name):
    return run([BIN, "verify", "out", "-q", *["--some-ranks"] * (name == "ranks")]).returncode


# What was to be removed may be there again: no removal has to be durable.
def holds(name):
    wanted, found = files_of(made(name, SCENARIOS[name].want)), files_of(made(name, "work/out"))
    return all(name in found and (os.path.isdir(path) or filecmp.cmp(path, found[name], shallow=False))
               for name, path in wanted.items())


def judge(name, trace, step, draw):
    scenario = SCENARIOS[name]
    lay_out(trace, *left_of(trace, step, draw))
    wrong = None
    finished = step == trace.steps
    blob = name != "unpack"
    if finished and not holds(name) or finished and blob and name != "shard" and verify(name) != 0:
        wrong = "exit 0, and the result is not there after the cut"
    elif scenario.left == "old" and blob and verify(name) != 0:
        wrong = "neither the old result nor the new one is whole"
    elif blob and name not in ("finalize", "repair") and verify(name) == 1:  # repair's was damaged before
        wrong = "looks complete and is damaged"
    if wrong is None:
        again = run(scenario.mend)
        if again.returncode != 0:
            wrong = f"mending ends with {again.returncode}: {again.stderr.strip()}"
        elif not same(made(name, "work/out"), made(name, scenario.want)):
            wrong = "mended, but other files"
        elif len(os.listdir("work")) != 1:
            wrong = f"mended, but left {os.listdir('work')}"
    return wrong


NAMES = [name for name in SCENARIOS if name != "published"]
TRACES = {}


def judge_named(case):
    name, step, draw = case.split(":")
    if name not in TRACES:
        TRACES[name] = read_trace(name)
    return judge(name, TRACES[name], int(step), int(draw))


def all_cuts():
    TRACES.update((name, read_trace(name)) for name in NAMES)
    draws = int(os.environ.get("MXFP4_DRAWS", "16"))
    return [f"{name}:{step}:{draw}" for name in NAMES for step in range(TRACES[name].steps + 1) for draw in range(draws)]


def draw_cuts(cuts, number, drawn):
    """Each command's end, with all lost that was not synced, is always among them."""
    ends = [f"{name}:{TRACES[name].steps}:{NOTHING}" for name in NAMES]
    return ends + jobs.sample(cuts, max(0, number - len(ends)), drawn)


if __name__ == "__main__":
    sys.exit(jobs.main("MXFP4_CUTS", 48, prepare, all_cuts, judge_named, draw_cuts))
