# Headers of a model of the size of gpt-oss-120b and holes for its data: inspect reads headers only and answers at once.
need_numpy
"$python" - <<'PY'
import json, os, struct
from layer_files import gpt_oss_config
E, H, I, LAYERS = 128, 2880, 2880, 36
os.mkdir("big")
json.dump(gpt_oss_config(LAYERS, E, H, I), open("big/config.json", "w"))
for layer in range(LAYERS):  # a file each
    header, at = {}, 0
    for name, dtype, shape in (("gate_up_proj_blocks", "U8", [E, 2 * I, H // 32, 16]), ("gate_up_proj_scales", "U8", [E, 2 * I, H // 32]),
                               ("gate_up_proj_bias", "BF16", [E, 2 * I]), ("down_proj_blocks", "U8", [E, H, I // 32, 16]),
                               ("down_proj_scales", "U8", [E, H, I // 32]), ("down_proj_bias", "BF16", [E, H])):
        size = 2 if dtype == "BF16" else 1
        for dimension in shape:
            size *= dimension
        header[f"model.layers.{layer}.mlp.experts.{name}"] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(f"big/model-{layer}.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)
PY

cat >measure.py <<'PY'
import os, subprocess, sys, time
LIMIT = 1.0  # seconds; the aim is 0.2 on a quiet machine
best = LIMIT
for _ in range(3):
    start = time.monotonic()
    run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    text = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    best = min(best, time.monotonic() - start)
    assert status == 0, text
print(f"inspect: {best * 1000:.0f} ms, {usage.ru_maxrss / 1024:.1f} MiB")
assert best < LIMIT or os.environ.get("UNMEASURED"), "too slow"
# Pages of the maps that were touched count as resident: headers are small, the data is 60 GiB.
assert usage.ru_maxrss < 256 << 10 or os.environ.get("UNMEASURED"), "more than headers was read"
for fact in ("0-35", "128", "2880", "gpt_oss"):
    assert fact in text, (fact, text)
PY
slow && export UNMEASURED=1
"$python" measure.py "$BIN" inspect big
"$python" measure.py "$BIN" inspect big --arch sm100 --tp-size 8
