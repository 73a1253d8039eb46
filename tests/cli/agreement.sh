# explain, inspect, convert --dry-run and convert agree: the same exit code and words, the same sizes,
# and the command that explain proposes succeeds. tests/property has the whole grid; here are the cases
# in which the commands once differed, and some of every kind.
slow && skip 'what other scripts run, slowly'
mkdir bin
ln -s "$BIN" bin/mxfp4-repack
PATH=$PWD/bin:$PATH

error_of() { grep '^mxfp4-repack: error:' "$1" || true; }

# agree FLAGS...: all four commands on $input.
agree() {
  local codes='' command
  for command in explain inspect dry convert; do
    local code=0 arguments=("$command" "$input" "$@" --json)
    [ "$command" = dry ] && arguments=(convert "$input" -o dry "$@" --dry-run --json)
    [ "$command" = convert ] && arguments=(convert "$input" -o out "$@" --json -q)
    "$BIN" "${arguments[@]}" >"$command.json" 2>"$command.err" || code=$?
    error_of "$command.err" >"$command.said"
    codes+=" $code"
  done
  read -r explained inspected planned converted <<<"$codes"
  for code in $inspected $planned $converted; do
    [ "$code" = "$explained" ] || fail "$input $*: exit codes$codes"
  done
  for command in inspect dry convert; do
    diff explain.said $command.said || fail "$input $*: $command says something else than explain"
  done
  if [ "$explained" = 0 ]; then
    "$python" - <<'PY' || fail "$input $*: sizes differ"
import json
explain, inspect, dry, convert = (json.load(open(n + ".json"))
                                  for n in ("explain", "inspect", "dry", "convert"))
target, padded = inspect["target"], explain["sizes"]["padded"]
assert explain["backend"] == target["backend"] == dry["backend"] == convert["backend"]
assert explain["layout"] == target["layout"] == dry["layout"] == convert["layout"]
for size in "hidden_size", "intermediate_size":
    assert padded[size] == target["padded_" + size] == dry["padded_" + size], size
assert target["data_bytes"] == dry["data_bytes"] == convert["data_bytes"]
assert target["num_ranks"] == dry["num_ranks"] == convert["num_ranks"]
PY
  fi
  rm -rf out OUT
  "$BIN" explain "$input" "$@" >text 2>/dev/null || true
  sed '1,/^next$/d' text >next.sh
  [ -s next.sh ] || return 0  # a wrong flag is answered with only an error
  bash -eu next.sh >next.out 2>&1 || { cat next.sh next.out >&2; fail "$input $*: the next command fails"; }
}

count=0
input=$TESTDATA/ingest/gptoss_hf
while read -r want flags; do
  # shellcheck disable=SC2086
  agree $flags
  [ "$explained" = "$want" ] || fail "$flags: exit $explained instead of $want"
  count=$((count + 1))
done <<'EOF'
0 --arch sm90
4 --arch sm90 --tp-size 3
4 --arch sm90 --tp-size 3 --enable-expert-parallel
4 --arch sm90 --tp-size 8 --enable-expert-parallel
4 --arch sm90 --tp-size 2 --pad none
4 --arch sm90 --tp-size 5
4 --arch aarch64
4 --arch sm90 --backend AITER_MXFP4_BF16
4 --arch sm90 --backend FLASHINFER_CUTLASS_MXFP4_BF16 --pad none
4 --arch sm90 --pad none
4 --arch sm90 --backend B12X_MXFP4_BF16 --revision 0.28.0
4 --arch sm90 --moe-backend xpu
2 --arch sm90 --moe-backend tritn
4 --arch sm90 --backend HUMMING --knob humming_input_dtype=int8
4 --arch sm100 --backend HUMMING --knob humming_input_dtype=none
2 --arch sm90 --rank 1
2 --arch sm90 --activation loud
2 --arch sm90 --knob tp_size=none
2 --arch sm90 --layers 7
2 --platform cuda --backend TRITON
EOF

# If flags and input are both wrong, all commands name the flag.
input=$TESTDATA/ingest/bad
for flags in '--arch nonsense' '--arch sm90 --knob zz=1' '--arch sm90 --style odd' '--arch sm90 --layers x'; do
  # shellcheck disable=SC2086
  agree $flags
  [ "$explained" = 2 ] || fail "$flags: exit $explained"
  count=$((count + 1))
done

# If two flags are wrong, all commands name the same one.
input=$TESTDATA/ingest/gptoss_hf
echo '{"vllm": "0.33.0", "platform": 3}' >wrong.json
for flags in '--platform tpu --env A' '--platform tpu --arch H1000' '--quantization-config none --env A' \
  '--revision 0.33.0 --target wrong.json --quantization-config none' '--libs zz --knob zz=1'; do
  # shellcheck disable=SC2086
  agree $flags
  count=$((count + 1))
done

for input in "$TESTDATA"/ingest/{gptoss_original,dsv4,quark_w4a4,quark_gptoss_w4a8,ct_mxfp4} \
  "$TESTDATA"/containers/{raw_loaded,hdf5/loaded_gzip.h5}; do
  while read -r flags; do
    # shellcheck disable=SC2086
    agree $flags
    count=$((count + 1))
  done <<'EOF'
--arch sm100 --tp-size 2
--arch sm90 --tp-size 2 --enable-expert-parallel
--arch gfx950
--arch sm90 --backend TRITON
--arch sm120 --tp-size 7
--arch sm80 --backend MARLIN --tp-size 3 --allow-known-defects
EOF
done
echo "$count combinations"
