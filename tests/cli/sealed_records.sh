# Records that somebody changed and sealed again: finalize believes no fact of a shard that is not the plan's,
# --resume no checksum of a tensor that its file does not have.
need_numpy
"$python" -c 'import xxhash' 2>/dev/null || skip 'python3-xxhash is not installed'
convert=("$BIN" convert "$TESTDATA/ingest/gptoss_hf" --backend MARLIN --arch sm80 --tp-size 2)
for shard in 0 1; do "${convert[@]}" -o shards --shard "$shard/2" -q; done
cp -r .shards.mxfp4_repack-new .whole.mxfp4_repack-new && "$BIN" finalize whole -q
cat >sealed.py <<'PY'
import copy, glob, json, os, random, shutil, subprocess, sys

import xxhash

BIN = os.environ["BIN"]


def checksum(data):
    return xxhash.xxh3_128(data).hexdigest().encode()


def finalize():
    return subprocess.run([BIN, "finalize", "out"], capture_output=True, text=True)


def leaves(value, path=()):
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    elif value is not None:
        yield path, value


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value[:-1] + ("0" if value[-1:] != "0" else "1")


records = sorted(glob.glob(".shards.mxfp4_repack-new/shard-*.progress"))
head = lambda name: open(name, "rb").read().split(b"\n", 1)
# Layers and the files of the model directory are each shard's own; finalize compares them with the files.
facts = [path for path, _ in leaves(json.loads(head(records[0])[0][33:])["ranks"])
         if path[1] not in ("layers", "rest", "warnings")]
drawn = random.Random(2026).sample(facts, min(len(facts), 24))
assert {path[1] for path in facts} >= {"target", "rank", "tool_version"}, facts
for path in drawn:
    for which in ([0], [1], [0, 1]):
        for name in ("out", ".out.mxfp4_repack-new"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree(".shards.mxfp4_repack-new", ".out.mxfp4_repack-new")
        for shard in which:
            name = records[shard].replace(".shards", ".out")
            first, rest = head(name)
            document = json.loads(first[33:])
            at = document["ranks"]
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = other(at[path[-1]])
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
            open(name, "wb").write(checksum(text) + b" " + text + b"\n" + rest)
        done = finalize()
        errors = [line for line in done.stderr.splitlines() if line.startswith("mxfp4-repack: error: ")]
        if done.returncode != 3 or len(errors) != 1 or os.path.exists("out"):
            sys.exit(f"{path} of shard {which}: exit {done.returncode}: {done.stdout}{done.stderr}")


# A journal: a run that was killed when some files were complete.
journal = None
for at in range(1, 400):
    shutil.rmtree(".cut.mxfp4_repack-new", ignore_errors=True)
    done = subprocess.run([*sys.argv[1:], "-o", "cut", "-j", "1"], capture_output=True,
                          env={**os.environ, "LD_PRELOAD": os.environ["FAULTS"], "FAULT_KILL_AT": str(at),
                               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
    if len(glob.glob(".cut.mxfp4_repack-new/result/rank-*/layer-*")) >= 2:
        break
lines = open(".cut.mxfp4_repack-new/progress", "rb").read().splitlines(keepends=True)
own = [i for i, line in enumerate(lines) if b'"file":"rank' in line]
assert len(own) >= 2, lines
line = lines[own[0]][33:].rstrip(b"\n")
entry = json.loads(line)
changed = copy.deepcopy(entry)
sums = changed["tensors"]
sums[-1] = other(sums[-1])
text = line.replace(entry["tensors"][-1].encode(), sums[-1].encode())
assert text != line
lines[own[0]] = checksum(text) + b" " + text + b"\n"
open(".cut.mxfp4_repack-new/progress", "wb").write(b"".join(lines))
done = subprocess.run([*sys.argv[1:], "-o", "cut", "--resume", "--json"], capture_output=True, text=True)
assert done.returncode == 0, done.stderr
kept = json.loads(done.stdout)["num_kept_files"]
assert kept == len(own) - 1, (kept, len(own))
PY
"$python" sealed.py "${convert[@]}"
expect_exit 0 "$BIN" verify cut
diff -r whole cut >/dev/null || fail 'a changed record changed the result'
