# Every input form and style, several backends: convert, verify, verify --against, unpack, and the
# unpacked tensors converted again give the same files wherever nothing is lost.
need_numpy
ingest=$TESTDATA/ingest

# round_trip INPUT FLAGS...: leaves the blob in `packed`. $back: flags of the second conversion, which
# give the facts that a checkpoint has and its unpacked tensors lack. $from: flags that describe INPUT.
back= from=
round_trip() {
  local input=$1
  shift
  rm -rf packed unpacked again
  # shellcheck disable=SC2086
  convert_quietly "$input" -o packed "$@" $from
  cp warnings said
  expect_exit 0 "$BIN" verify packed
  expect_exit 0 "$BIN" verify packed --against "$input" $from
  expect_exit 0 "$BIN" unpack packed -o unpacked
  cp stderr lost
  # shellcheck disable=SC2086
  convert_quietly unpacked -o again "$@" $back
  grep -q 'not exact\|not in the blob' lost && return
  for file in packed/layer-*; do
    cmp "$file" "again/${file#packed/}" || fail "unpack and convert of $input $*"
  done
}

# every_layout.sh has each layout; here is each style.
for input in gptoss_hf gptoss_original; do
  round_trip "$ingest/$input" --arch sm90
  round_trip "$ingest/$input" --backend FLASHINFER_TRTLLM_MXFP4_BF16 --arch sm100 --compress none
  round_trip "$ingest/$input" --backend MARLIN --arch sm80
done
round_trip "$ingest/quark_gptoss_w4a8" --backend AITER_MXFP4_FP8 --arch gfx950 --revision vllm-2026-05-18
round_trip "$ingest/quark_gptoss_w4a8" --backend DEEPGEMM_MXFP4 --arch sm100
back='--activation silu'
for backend in MARLIN HUMMING DEEPGEMM_MXFP4 TRITON_UNFUSED; do
  rules=
  [ $backend != HUMMING ] || rules='--revision vllm-2026-05-18'
  # shellcheck disable=SC2086
  round_trip "$ingest/quark_w4a4" --backend $backend --arch sm90 $rules
  # shellcheck disable=SC2086
  round_trip "$ingest/dsv4" --backend $backend --arch sm100 $rules
done
# Newer rules pad these models otherwise than gpt-oss, whose tensors `unpack` writes.
back='--activation silu --pad none'
for backend in MARLIN DEEPGEMM_MXFP4 TRITON_UNFUSED; do
  round_trip "$ingest/ct_mxfp4" --backend $backend --arch sm100 --revision vllm-2026-05-18
  round_trip "$ingest/ct_kimi" --backend $backend --arch sm100 --revision vllm-2026-05-18
done
back=

# The same model in every container; some files hold its first layer only.
containers=$TESTDATA/containers
config=$containers/safetensors/config.json
round_trip "$containers/safetensors" --arch sm100
mv packed want
from="--model-config $config"
for input in safetensors/model.safetensors raw_checkpoint raw_checkpoint/manifest.json \
  hdf5/checkpoint_flat_contiguous.h5 hdf5/checkpoint_nested_gzip.h5; do
  round_trip "$containers/$input" --arch sm100
  for file in packed/layer-*; do cmp "$file" "want/${file#packed/}" || fail "$input"; done
done
grep -q 'warning: .*num_hidden_layers: 2, but 1 of these layers are not here' said ||
  fail 'no warning that a layer is missing'
from=
for input in raw_loaded hdf5/loaded_gzip.h5 hdf5/loaded_latest_fletcher.h5; do
  round_trip "$containers/$input" --arch sm100
  "$python" - <<'PY'
import glob, numpy, layer_files
for path in glob.glob("packed/layer-*"):
    made, _ = layer_files.read(path)
    want, _ = layer_files.read(path.replace("packed", "want"))
    ending = lambda tensors: {name.rsplit(".", 1)[1]: array for name, array in tensors.items()}
    made, want = ending(made), ending(want)
    assert made.keys() == want.keys(), path
    for name in want:
        assert numpy.array_equal(made[name], want[name]), (path, name)
PY
done
