# convert --dry-run tells what this very run would write.
model=$TESTDATA/ingest/gptoss_hf
flags=(--arch sm90 --backend MARLIN --compress none)
# as_planned FLAG...: what --dry-run --json says beforehand is what is there afterwards.
as_planned() {
  expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" "$@" --dry-run --json
  mv stdout plan.json
  [ ! -e out ] || fail '--dry-run wrote'
  expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" "$@"
  "$python" - <<'PY'
import glob, json, os, struct
plan = json.load(open("plan.json"))
data = 0
layers = glob.glob("out/**/layer-*.safetensors", recursive=True)
for path in layers:
    header = struct.unpack("<Q", open(path, "rb").read(8))[0]
    data += os.path.getsize(path) - 8 - header
blob = {"mxfp4_repack", "mxfp4_repack.json"}
rest = [] if not os.path.exists("out/mxfp4_repack") else [
    "out/" + name for name in os.listdir("out") if name not in blob and not name.startswith(".")]
said = (plan["files"], plan["rest_files"])
assert said == (len(layers), len(rest)), (said, layers, rest)
assert plan["output_bytes"] == data, (plan, data)
assert bool(plan["rest_bytes"]) == bool(rest), plan
PY
  rm -r out
}
as_planned
as_planned --tp-size 2
as_planned --layers 1
as_planned --include-rest
for i in 0 1 2; do
  as_planned --shard $i/3
  as_planned --shard $i/3 --include-rest
done
expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" --shard 0/2 --include-rest --dry-run
grep -qE 'would write 1 layer file, .* and 3 other files, ' stdout || { cat stdout; fail 'no share'; }

# What would be refused is.
expect_exit 5 "$BIN" convert "$model" -o "$model" --arch sm90 --force --dry-run
expect_one_error 'holds the input'

# Experts that are in neither part of a model directory are told.
warning='OUT lacks the experts of 1 layer, which --layers leaves out'
expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" --include-rest --layers 0
grep -q "warning: $warning" stderr || fail 'no warning of missing experts'
grep -q -e "$warning" out/mxfp4_repack/mxfp4_repack.json || fail 'the manifest lacks the warning'
expect_exit 0 "$BIN" convert "$model" -o whole "${flags[@]}" --include-rest --layers 0-1
! grep -q 'lacks' stderr || fail 'a warning though all layers are there'
