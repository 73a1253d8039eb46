# explain, inspect, convert --dry-run and convert agree: the same exit code and words, the same decision. tests/property
# has the whole grid of decisions; here are refusals of every kind, and some of each input.
slow && skip 'what other scripts run, slowly'

# agree FLAGS...: all four commands on $input; the exit code is in $explained.
agree() {
  local command code arguments
  for command in explain inspect dry convert; do
    arguments=("$command" "$input" "$@" --json)
    [ "$command" = dry ] && arguments=(convert "$input" -o dry "$@" --dry-run --json)
    [ "$command" = convert ] && arguments=(convert "$input" -o out "$@" --json -q)
    code=0
    "$BIN" "${arguments[@]}" >"$command.json" 2>"$command.err" || code=$?
    { echo "exit $code"; grep '^mxfp4-repack: error:' "$command.err" || true; } >"$command.said"
    diff explain.said $command.said || fail "$input $*: $command says something else than explain"
    [ $command != explain ] || explained=$code
  done
  rm -rf out
  [ "$explained" = 0 ] || return 0
  "$python" - <<'PY' || fail "$input $*: other decisions"
import json
explain, inspect, dry, convert = (json.load(open(n + ".json")) for n in ("explain", "inspect", "dry", "convert"))
target, padded = inspect["target"], explain["sizes"]["padded"]
for name in "backend", "layout":
    assert explain[name] == target[name] == dry[name] == convert[name], name
for size in "hidden_size", "intermediate_size":
    assert padded[size] == target["padded_" + size] == dry["padded_" + size], size
assert target["data_bytes"] == dry["data_bytes"] == convert["data_bytes"]
PY
}

while read -r want input flags; do
  input=$TESTDATA/$input
  # shellcheck disable=SC2086
  agree $flags
  [ "$explained" = "$want" ] || fail "$input $flags: exit $explained instead of $want"
done <<'EOF_CASES'
0 ingest/gptoss_hf --arch sm90
4 ingest/gptoss_hf --arch sm90 --tp-size 3
4 ingest/gptoss_hf --arch sm90 --tp-size 3 --enable-expert-parallel
4 ingest/gptoss_hf --arch sm90 --tp-size 2 --pad none
4 ingest/gptoss_hf --arch aarch64
4 ingest/gptoss_hf --arch sm90 --backend AITER_MXFP4_BF16
4 ingest/gptoss_hf --arch sm90 --backend FLASHINFER_CUTLASS_MXFP4_BF16 --pad none
4 ingest/gptoss_hf --arch sm90 --backend B12X_MXFP4_BF16 --revision 0.28.0
4 ingest/gptoss_hf --arch sm90 --moe-backend xpu
2 ingest/gptoss_hf --arch sm90 --moe-backend tritn
4 ingest/gptoss_hf --arch sm90 --backend HUMMING --knob humming_input_dtype=int8
2 ingest/gptoss_hf --arch sm90 --rank 1
2 ingest/gptoss_hf --arch sm90 --knob tp_size=none
2 ingest/gptoss_hf --arch sm90 --layers 7
2 ingest/gptoss_hf --platform cuda --backend TRITON
2 ingest/gptoss_hf --platform tpu --env A
2 ingest/bad --arch sm90 --knob zz=1
0 ingest/gptoss_original --arch sm100 --tp-size 2
0 ingest/dsv4 --arch sm100 --tp-size 2 --enable-expert-parallel
4 ingest/dsv4 --arch sm120 --tp-size 7
0 ingest/quark_w4a4 --arch gfx950
0 ingest/ct_mxfp4 --arch sm80 --backend MARLIN
0 containers/raw_loaded --arch sm100
0 containers/hdf5/loaded_gzip.h5 --arch sm90 --backend TRITON
EOF_CASES
