# The same model in every container: convert, verify --against, and the bytes that the safetensors directory gives; some
# files hold its first layer only. cli.blob_input has every style there and back, cli.every_layout every layout.
need_numpy
containers=$TESTDATA/containers
config=$containers/safetensors/config.json
convert_quietly "$containers/safetensors" -o want --arch sm100
expect_exit 0 "$BIN" verify want --against "$containers/safetensors"
for input in safetensors/model.safetensors raw_checkpoint raw_checkpoint/manifest.json \
  hdf5/checkpoint_flat_contiguous.h5 hdf5/checkpoint_nested_gzip.h5; do
  rm -rf packed
  convert_quietly "$containers/$input" -o packed --arch sm100 --model-config "$config"
  expect_exit 0 "$BIN" verify packed --against "$containers/$input" --model-config "$config"
  for file in packed/layer-*; do cmp "$file" "want/${file#packed/}" || fail "$input"; done
done
grep -q 'warning: .*num_hidden_layers: 2, but 1 of these layers are not here' warnings ||
  fail 'no warning that a layer is missing'
for input in raw_loaded hdf5/loaded_gzip.h5 hdf5/loaded_latest_fletcher.h5; do
  rm -rf packed
  convert_quietly "$containers/$input" -o packed --arch sm100
  expect_exit 0 "$BIN" verify packed --against "$containers/$input"
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
