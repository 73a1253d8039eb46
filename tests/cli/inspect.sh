# inspect: tensor by tensor, of checkpoints and blobs, and by any part of one.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o out --arch sm90
expect_exit 0 "$BIN" inspect out --tensors
grep -qE '^model.layers.1.mlp.experts.w13_weight +U8 ' stdout || fail 'no tensor'
grep -qE '^block_scales +[0-9.]+ KiB' stdout || fail 'no totals'
expect_exit 0 "$BIN" inspect out --layer 1 --json
mv stdout one.json
expect_exit 0 "$BIN" inspect out/mxfp4_repack.json --layer 1 --json
cmp one.json stdout || fail 'a manifest is not its blob'
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

# A file with its config.json beside it.
single=$TESTDATA/ingest/gptoss_original
expect_exit 0 "$BIN" inspect "$single/model.safetensors"
grep -qE '^style +gpt_oss_original$' stdout || fail 'the config.json beside a file is not read'
expect_exit 0 "$BIN" convert "$single/model.safetensors" -o one --arch sm90 -q
expect_exit 0 "$BIN" convert "$single" -o whole --arch sm90 -q
expect_exit 0 "$BIN" diff one whole
