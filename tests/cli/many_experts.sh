# Small experts share a frame: the ways back decode it once, not once for each of them. In processor time, beside
# convert's: decoding it each time took a hundred times as much.
need_numpy
"$python" "$SOURCE_DIR/scripts/make-checkpoint" many --layers 1 --experts 1024 --hidden 128 --intermediate 128 --experts-only >/dev/null
cat >timed.py <<'PY'
import os, resource, subprocess, sys

BIN = os.environ["BIN"]


def seconds(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BIN, *words, "-q", "-j", "2"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


target = ["--backend", "MARLIN", "--arch", "sm80"]
convert = seconds("convert", "many", "-o", "packed", *target)
for name, words in (("unpack", ["unpack", "packed", "-o", "loaded"]),
                    ("as published", ["unpack", "packed", "-o", "published", "--as-published"]),
                    ("again", ["convert", "packed", "-o", "again", *target])):
    took = seconds(*words)
    print(f"{name}: {took / convert:.1f} times convert's {convert:.2f} s")
    assert took < 12 * convert + 1, name
PY
"$python" timed.py
diff -r packed again >/dev/null || fail 'other bytes from the blob'
"$BIN" convert published -o third --backend MARLIN --arch sm80 -q --model-config many/config.json 2>/dev/null ||
  "$BIN" convert published -o third --backend MARLIN --arch sm80 -q
cmp packed/layer-00000.safetensors.zst third/layer-00000.safetensors.zst || fail 'other bytes from what was unpacked'
