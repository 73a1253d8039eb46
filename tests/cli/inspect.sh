# inspect: tensor by tensor, of checkpoints and blobs, and by any part of one.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o out --arch sm90
expect_exit 0 "$BIN" inspect out --tensors
grep -qE '^model.layers.1.mlp.experts.w13_weight +U8 ' stdout || fail 'no tensor'
grep -qE '^block_scales +[0-9.]+ KiB' stdout || fail 'no totals'
expect_exit 0 "$BIN" inspect out --layer 1 --json
mv stdout one.json
for path in out/mxfp4_repack.json out/layer-00001.safetensors.zst; do
  expect_exit 0 "$BIN" inspect $path --layer 1 --json
  cmp one.json stdout || fail "inspect $path says something else"
done
expect_exit 0 "$BIN" inspect out/layer-00001.safetensors.zst --json
cmp one.json stdout || fail 'a layer file is not its layer'
for layer in 0 7; do
  expect_exit 2 "$BIN" inspect out/layer-00001.safetensors.zst --layer $layer
  expect_one_error "--layer $layer contradicts out/layer-00001.safetensors.zst, the file of layer 1$"
  grep -qx 'hint: --layer chooses one in out' stderr || fail 'no hint'
  [ ! -s stdout ] || fail 'half an answer'
done
"$python" - <<'END'
import json, os
rank = json.load(open("one.json"))["ranks"][0]
assert {t["layer"] for t in rank["tensors"]} == {1}, rank
for size in "data_bytes", "stored_bytes":
    assert sum(t[size] for t in rank["tensors"]) == sum(k[size] for k in rank["totals"].values())
assert 0 < sum(t["stored_bytes"] for t in rank["tensors"]) <= os.path.getsize("out/layer-00001.safetensors.zst")
END
expect_exit 2 "$BIN" inspect out --layer 7
expect_one_error '--layer: there is no MoE layer 7; the MoE layers are 0 to 1$'

# A layer file that is missing, short or not the blob's: a warning, and a finding in JSON.
cp -r out broken
rm broken/layer-00000.safetensors.zst
truncate -s -1 broken/layer-00001.safetensors.zst
cp out/layer-00001.safetensors.zst broken/layer-00007.safetensors.zst
expect_exit 0 "$BIN" inspect broken --json
"$python" - <<'END'
import json
document = json.load(open("stdout"))
findings = document["ranks"][0]["findings"]
for text in "00000.safetensors.zst: missing", " in the manifest", "00007.safetensors.zst: not in the manifest":
    assert any(text in finding for finding in findings), (text, findings)
assert len(findings) == 3 and set(findings) <= set(document["warnings"]), document
END
[ "$(grep -c '^mxfp4-repack: warning: broken/layer-0000' stderr)" = 3 ] || { cat stderr >&2; fail 'three faults are not seen'; }
expect_exit 0 "$BIN" inspect out --json
grep -q '"findings": \[\]' stdout || fail 'a whole blob has findings'

# One shape for a checkpoint and a blob; the source; the sizes of layers.
expect_exit 0 "$BIN" inspect "$model" --tensors --json
mv stdout checkpoint.json
expect_exit 0 "$BIN" inspect out --tensors --json
"$python" - <<'END'
import json
def keys(value):
    if isinstance(value, dict): return {key: keys(item) for key, item in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None
checkpoint, blob = (json.load(open(name))["ranks"][0] for name in ("checkpoint.json", "stdout"))
parallel = blob.pop("parallel")
assert parallel and checkpoint.pop("parallel") is None
assert blob.pop("findings") == []
a, b = keys(checkpoint), keys(blob)
assert a == b, (a, b)
assert checkpoint["source"] == blob["source"], blob["source"]
for part in checkpoint, blob:
    assert [size["layer"] for size in part["layer_sizes"]] == part["layers"] == [0, 1], part
    for size in "data_bytes", "stored_bytes":
        assert sum(layer[size] for layer in part["layer_sizes"]) == part[size], part
    assert part["layer_sizes"][0]["intermediate_size"] == 96, part
END
# The samples are the layers', not the container's, nor what was chosen of it.
samples() {
  rm -rf sampled
  "$BIN" convert "$@" -o sampled --arch sm90 --compress none -q && sed -n 's/^ *"sample": //p' sampled/mxfp4_repack.json
}
containers=$TESTDATA/containers
[ -n "$(samples "$containers/safetensors")" ] || fail 'no samples'
for container in raw_checkpoint hdf5/checkpoint_flat_contiguous.h5; do
  [ "$(samples "$containers/$container")" = "$(samples "$containers/safetensors")" ] || fail "$container: other samples"
done
[ "$(samples "$model" | head -n 1)" = "$(samples "$model" --layers 0)" ] || fail 'two samples of one layer'
expect_exit 0 "$BIN" inspect out
grep -qE '^source +kind safetensors, model_type gpt_oss, 5 files$' stdout || fail 'no source model'
grep -qE '^0-1 +4 +64 +96 +[0-9.]+ KiB ' stdout || fail 'no sizes of layers'

# A file with its config.json beside it; one of several stands for all of them.
single=$TESTDATA/ingest/gptoss_original
expect_exit 0 "$BIN" inspect "$single/model.safetensors"
grep -qE '^style +gpt_oss_original$' stdout || fail 'the config.json beside a file is not read'
expect_exit 0 "$BIN" convert "$single/model.safetensors" -o one --arch sm90 -q
expect_exit 0 "$BIN" convert "$single" -o whole --arch sm90 -q
expect_exit 0 "$BIN" diff one whole
expect_exit 0 "$BIN" inspect "$model/model-00001-of-00002.safetensors"
grep -q 'model-00001-of-00002.safetensors: one file of a checkpoint; all of it is shown$' stderr || fail 'nothing says that more is shown'
grep -qE '^layers +0-1$' stdout || fail 'not the whole checkpoint'
expect_exit 3 "$BIN" convert "$model/model-00001-of-00002.safetensors" -o part --arch sm90
grep -qx "hint: one of a checkpoint's files: give the directory" stderr || { cat stderr >&2; fail 'no hint'; }

# A checkpoint, by its config.json and as a cache has it.
expect_exit 0 "$BIN" inspect "$model" --tensors
mv stdout want
mkdir -p hub/models--a--b/refs hub/models--a--b/snapshots
cp -r "$model" hub/models--a--b/snapshots/0123abc
printf 0123abc >hub/models--a--b/refs/main
for path in hub hub/models--a--b hub/models--a--b/snapshots/0123abc/config.json; do
  expect_exit 0 "$BIN" inspect $path --tensors
  cmp want stdout || fail "inspect $path says something else"
done
expect_exit 0 "$BIN" convert hub -o from-root --arch sm90
mkdir hub/models--a--c
for command in 'inspect hub' 'convert hub -o no --arch sm90 -q' 'verify from-root --against hub'; do
  # shellcheck disable=SC2086
  expect_exit 3 "$BIN" $command
  expect_one_error 'hub: a cache of 2 models: models--a--b models--a--c$'
done
rmdir hub/models--a--c
# A refs/main that is not a small text names no snapshot, and is not waited for.
rm hub/models--a--b/refs/main
mkfifo hub/models--a--b/refs/main
expect_exit 0 timeout 60 "$BIN" inspect hub/models--a--b --tensors
cmp want stdout || fail 'the only snapshot is not it'
rm hub/models--a--b/refs/main
# convert takes the folder too, with the small files of the snapshot beside the blob.
expect_exit 0 "$BIN" convert hub/models--a--b -o from-hub --arch sm90 --include-rest
expect_exit 0 "$BIN" convert hub/models--a--b/snapshots/0123abc -o from-snapshot --arch sm90 --include-rest
diff -r from-hub from-snapshot || fail 'the folder and its snapshot give other blobs'
printf nowhere >hub/models--a--b/refs/main
mkdir hub/models--a--b/snapshots/other
expect_exit 3 "$BIN" inspect hub/models--a--b
expect_one_error 'hub/models--a--b: 2 snapshots, and refs/main names none of them'
