# diff: the same layout and bytes, or what differs first, with both values; 0 or 1, and more for trouble.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o a --arch sm90 --backend MARLIN --revision vllm-2026-05-18
convert_quietly "$model" -o plain --arch sm90 --backend MARLIN --compress none --revision vllm-2026-05-18
convert_quietly "$model" -o other --arch sm90 --backend TRITON --revision vllm-2026-05-18
convert_quietly "$model" -o one --arch sm90 --backend MARLIN --layers 1 --revision vllm-2026-05-18
convert_quietly "$model" -o ranks --arch sm90 --backend MARLIN --tp-size 2

expect_exit 0 "$BIN" diff a a
expect_exit 0 "$BIN" diff a plain
grep -qx 'a and plain: the same layout and bytes by their manifests: marlin/w4a16' stdout || fail "$(cat stdout)"
expect_exit 0 "$BIN" diff ranks ranks/
# differs REGEX A B: exit 1 and one line.
differs() {
  expect_exit 1 "$BIN" diff "$2" "$3"
  grep -qxE "$2 and $3 differ: $1" stdout || fail "diff $2 $3: $(cat stdout)"
  [ "$(wc -l <stdout)" = 1 ] && [ ! -s stderr ] || fail 'not one line'
}
differs 'layer 0: layout: marlin/w4a16, triton/hopper' a other
differs 'layers: \[0,1\], \[1\]' a one
differs 'rank directories: 1, 2' a ranks
differs 'ranks: 1, 2' a ranks/rank-00-of-02
differs 'rank 0: rank: 0, 1' ranks/rank-00-of-02 ranks/rank-01-of-02

# A changed code of the checkpoint is found and named, whatever holds it.
cp -r "$model" changed
flip() { "$python" -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 0x10
open(sys.argv[1], "wb").write(data)' "$1" "$2"; }
"$python" - <<'PY'
import glob, json
for path in glob.glob("changed/*.safetensors"):
    data = bytearray(open(path, "rb").read())
    size = int.from_bytes(data[:8], "little")
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name.endswith(".1.mlp.experts.down_proj_blocks"):
            data[8 + size + tensor["data_offsets"][1] - 1] ^= 0x10
            open(path, "wb").write(data)
PY
convert_quietly changed -o b --arch sm90 --backend MARLIN --revision vllm-2026-05-18
for first in a plain; do
  differs 'model\.layers\.1\.mlp\.experts\.w2_weight: element \[[0-9,]+\]: 0x[0-9a-f]+, 0x[0-9a-f]+' $first b
done
expect_exit 1 "$BIN" diff plain b --json
"$python" -c '
import json
d = json.load(open("stdout"))
assert d["same"] is False and d["difference"]["what"].startswith("element"), d'
# The tensor that differs is read, and damage of its file is an error; what is equal by its checksum is not read.
cp -r a damaged
flip damaged/layer-00001.safetensors.zst $(($(stat -c %s a/layer-00001.safetensors.zst) / 2))
expect_exit 3 "$BIN" diff damaged b
expect_one_error 'damaged/layer-00001.safetensors.zst'
expect_exit 0 "$BIN" diff a damaged

# Trouble: 2 and above.
expect_exit 3 "$BIN" diff a nowhere
