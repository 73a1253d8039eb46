# diff: the same layout and bytes, or what differs first, with both values; 0 or 1, and more for trouble.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o a --arch sm90 --backend MARLIN --revision vllm-2026-05-18
convert_quietly "$model" -o plain --arch sm90 --backend MARLIN --compress none --revision vllm-2026-05-18
convert_quietly "$model" -o other --arch sm90 --backend TRITON --revision vllm-2026-05-18
convert_quietly "$model" -o one --arch sm90 --backend MARLIN --layers 1 --revision vllm-2026-05-18
convert_quietly "$model" -o ranks --arch sm90 --backend MARLIN --tp-size 2

expect_exit 0 "$BIN" diff a a
expect_exit 0 "$BIN" diff a plain
grep -qE '^a and plain: the same layout and bytes: marlin/w4a16, [0-9.]+ KiB in ' stdout || fail "$(cat stdout)"
grep -qx 'different, without effect on the bytes: compression: zstd, none' stdout || fail 'no note'
expect_exit 0 "$BIN" diff ranks ranks/
# differs REGEX A B: exit 1 and one line.
differs() {
  expect_exit 1 "$BIN" diff "$2" "$3" ${threads:+--threads "$threads"}
  grep -qxE "$2 and $3 differ: $1" stdout || fail "diff $2 $3: $(cat stdout)"
  [ "$(wc -l <stdout)" = 1 ] && [ ! -s stderr ] || fail 'not one line'
}
differs 'layout: marlin/w4a16, triton/hopper' a other
differs 'layers: \[0, 1\], \[1\]' a one
differs 'rank directories: 1, 2' a ranks
differs 'ranks: 1, 2' a ranks/rank-00-of-02
differs 'rank 0: rank: 0, 1' ranks/rank-00-of-02 ranks/rank-01-of-02

# A changed byte of a plain file is found and named; of a compressed one it is damage.
flip() { "$python" -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 0x10
open(sys.argv[1], "wb").write(data)' "$1" "$2"; }
cp -r plain flipped
flip flipped/layer-00001.safetensors -1
differs 'model\.layers\.1\.mlp\.experts\.[a-z0-9_]+: element \[[0-9, ]+\]: 0x[0-9a-f]+, 0x[0-9a-f]+' plain flipped
expect_exit 1 "$BIN" diff plain flipped --json
"$python" -c '
import json
d = json.load(open("stdout"))
assert d["same"] is False and d["difference"]["what"].startswith("element"), d'
cp -r a damaged
flip damaged/layer-00000.safetensors.zst $(($(stat -c %s a/layer-00000.safetensors.zst) / 2))
expect_exit 3 "$BIN" diff a damaged
expect_one_error 'damaged/layer-00000.safetensors.zst'
# diff reads nothing behind the first difference, so damage there changes nothing, whatever the number
# of threads; damage before it is an error.
cp -r plain early
flip early/layer-00000.safetensors -1
cp -r a late
flip late/layer-00001.safetensors.zst $(($(stat -c %s a/layer-00001.safetensors.zst) / 2))
for threads in 1 4; do
  differs 'model\.layers\.0\.mlp\.experts\.[a-z0-9_]+: element .*' early late
  expect_exit 3 "$BIN" diff flipped damaged --threads "$threads"
  expect_one_error 'damaged/layer-00000.safetensors.zst'
done

# Trouble: 2 and above, one error.
trouble() {
  local code=$1 regex=$2
  shift 2
  expect_exit "$code" "$BIN" diff "$@"
  expect_one_error "$regex"
  [ ! -s stdout ] || fail "a result in spite of trouble: $*"
}
trouble 3 'nowhere: cannot be opened: No such file or directory' a nowhere
trouble 3 'no mxfp4_repack.json here' "$model" a
trouble 3 'layer-00000.safetensors.zst: not a directory; a blob is one' a a/layer-00000.safetensors.zst
trouble 2 '' a
trouble 2 '' a a a
trouble 2 '' a ''
trouble 2 'unknown flag' a a --arch sm90
cp -r plain short
rm short/layer-00001.safetensors
trouble 3 'short/layer-00001.safetensors' plain short
cp -r plain swapped
cp other/layer-00000.safetensors.zst swapped/layer-00000.safetensors
trouble 3 'swapped/layer-00000.safetensors' plain swapped
