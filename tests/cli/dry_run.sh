# convert --dry-run prints what the same command without it would write.
model=$TESTDATA/ingest/gptoss_hf
flags=(--arch sm90 --backend MARLIN --compress none)
# as_planned FLAG...: what --dry-run --json says beforehand is what is there afterwards.
as_planned() {
  expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" "$@" --dry-run --json
  mv stdout plan.json
  [ ! -e out ] || fail '--dry-run wrote'
  expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" "$@"
  [ -e out ] || mv .out.mxfp4_repack-new/result out  # a shard's
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
said = (plan["num_layer_files"], plan["num_rest_files"])
assert said == (len(layers), len(rest)), (said, layers, rest)
assert plan["data_bytes"] == data, (plan, data)
assert bool(plan["rest_bytes"]) == bool(rest), plan
PY
  rm -rf out .out.*
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
grep -qE '^layer files +1$' stdout && grep -qE '^rest files +3$' stdout || { cat stdout; fail 'no share'; }

# A dry run ends as the run would, says what is in OUT, and changes nothing in OUT or beside it.
# A file that is made and removed again leaves the time of the folder that held it.
mkdir at
expect_exit 0 "$BIN" convert "$model" -o at/done "${flags[@]}"
cp -r at/done before
state() { find at -printf '%p %i %m %n %s %T@ %C@\n' | sort; }
dry() { # CODE REGEX FLAGS...: the last line or the error
  local code=$1 regex=$2
  shift 2
  find at -exec touch -h -d 2001-01-01 {} +
  state >state-before
  expect_exit "$code" "$BIN" convert "$model" -o at/done "${flags[@]}" "$@" --dry-run
  grep -qE -e "$regex" stdout stderr || { cat stdout stderr; fail "not said: $regex"; }
  state >state-after
  diff state-before state-after || fail "--dry-run touched OUT or what is beside it with $*"
  diff -r before at/done || fail "--dry-run changed OUT with $*"
}
dry 0 'done: complete already' --resume
dry 0 '^output holds +a complete result of 2 layer files$' --force
dry 2 '--layers: 0,1, now 1' --resume --layers 1
: >at/done/notes.txt
cp at/done/notes.txt before/
dry 5 'done: holds notes.txt, which this program did not write$' --force
rm at/done/notes.txt
expect_exit 0 "$BIN" convert "$model" -o none --arch sm90 --dry-run --json
"$python" - <<'PY'
import json
plan = json.load(open("stdout"))
assert plan["output_holds"] == "nothing" and plan["free_bytes"] > 0, plan
PY
[ ! -e none ] || fail '--dry-run wrote'

# A warning names experts that are in neither part of a model directory.
warning='OUT lacks the experts of 1 layer, which --layers leaves out'
expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" --include-rest --layers 0
grep -q "warning: $warning" stderr || fail 'no warning of missing experts'
grep -q -e "$warning" out/mxfp4_repack/mxfp4_repack.json || fail 'the manifest lacks the warning'
