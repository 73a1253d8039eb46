# inspect: tensor by tensor, of checkpoints and blobs, and by any part of one.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o out --arch sm90
expect_exit 0 "$BIN" inspect out --tensors
grep -qx 'layer 1: model.layers.1.mlp.experts' stdout || fail 'no layer'
grep -qE '^w13_weight +U8 ' stdout || fail 'no tensor'
grep -q 'strides' stdout || fail 'no strides'
grep -qE '^block scales +[0-9.]+ KiB' stdout || fail 'no totals'
expect_exit 0 "$BIN" inspect out --layer 1 --json
mv stdout one.json
for path in out/mxfp4_repack.json out/layer-00001.safetensors.zst; do
  expect_exit 0 "$BIN" inspect $path --layer 1 --json
  cmp one.json stdout || fail "inspect $path says something else"
done
expect_exit 0 "$BIN" inspect out/layer-00001.safetensors.zst --json
cmp one.json stdout || fail 'a layer file is not its layer'
"$python" - <<'END'
import json, os
rank = json.load(open("one.json"))["ranks"][0]
assert {t["layer"] for t in rank["tensors"]} == {1}, rank
for size in "data_bytes", "stored_bytes":
    assert sum(t[size] for t in rank["tensors"]) == sum(k[size] for k in rank["totals"].values())
assert 0 < sum(t["stored_bytes"] for t in rank["tensors"]) <= os.path.getsize("out/layer-00001.safetensors.zst")
END
expect_exit 2 "$BIN" inspect out --layer 7
expect_one_error '--layer 7: no such MoE layer here$'

# A checkpoint, by its config.json and as a cache has it.
expect_exit 0 "$BIN" inspect "$model" --tensors
mv stdout want
mkdir -p hub/models--a--b/refs hub/models--a--b/snapshots
cp -r "$model" hub/models--a--b/snapshots/0123abc
printf 0123abc >hub/models--a--b/refs/main
for path in hub/models--a--b hub/models--a--b/snapshots/0123abc/config.json; do
  expect_exit 0 "$BIN" inspect $path --tensors
  cmp want stdout || fail "inspect $path says something else"
done
printf nowhere >hub/models--a--b/refs/main
mkdir hub/models--a--b/snapshots/other
expect_exit 3 "$BIN" inspect hub/models--a--b
expect_one_error 'hub/models--a--b: 2 snapshots, and refs/main names none of them'
