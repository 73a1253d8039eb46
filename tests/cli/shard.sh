# Several processes write one blob: convert --shard, then finalize; the bytes of one process.
input=$TESTDATA/ingest/gptoss_hf
flags=(--arch sm90 --backend MARLIN)
shard() { "$BIN" convert "$input" -o out "${flags[@]}" "$@"; }

# One layer a shard, and one shard without any; written at once.
for extra in '' '--compress none --include-rest --tp-size 2'; do
  rm -rf want out
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert "$input" -o want "${flags[@]}" $extra
  # shellcheck disable=SC2086
  for i in 2 0 1; do shard --shard "$i/3" $extra >/dev/null & done
  wait
  [ -z "$(find out -name mxfp4_repack.json)" ] || fail 'a manifest before finalize'
  "$BIN" verify out >/dev/null 2>&1 && fail 'shards alone were taken for a blob'
  expect_exit 0 "$BIN" finalize out
  diff -r want out
  expect_exit 0 "$BIN" finalize out
  expect_exit 0 "$BIN" verify out --against "$input"
done

# A shard that is there: accepted, refused, written again.
rm -rf out
expect_exit 0 shard --shard 0/2
expect_exit 0 shard --shard 0/2 --resume
grep -qx 'out: shard 0/2 is complete already, nothing to do' stdout && grep -qx 'next: the other shards, 1 of 2 are complete; then mxfp4-repack finalize out' stdout ||
  { cat stdout >&2; fail 'the shard was not recognised'; }
expect_exit 0 shard --shard 0/2 --resume --json
"$python" -c 'import json; d = json.load(open("stdout")); assert (d["complete"], d["already_complete"]) == (False, True), d'
expect_exit 5 shard --shard 0/2
expect_one_error 'an earlier run of this shard was here'
expect_exit 0 shard --shard 0/2 --force

# A gap; a mixed plan; another count; a whole conversion among shards.
expect_exit 3 "$BIN" finalize out
expect_one_error '1 of 2 shards are complete, missing: 1'
[ ! -e out/mxfp4_repack.json ] || fail 'a manifest over a gap'
expect_exit 5 shard --shard 1/2 --compress none
expect_one_error 'a shard of another plan: '
expect_exit 5 shard --shard 1/3
expect_one_error 'a shard of another plan'
expect_exit 5 shard --shard 1/2 --include-rest
expect_one_error 'out/mxfp4_repack.shard-000-of-002.json: a shard of another plan'
expect_exit 5 shard --resume
expect_one_error 'holds shards of a conversion'
expect_exit 5 shard --resume --include-rest
expect_one_error 'holds shards of a conversion'
expect_exit 5 shard
expect_one_error 'exists and is not empty'

# The input changed after a shard was written.
rm -rf model changed
cp -r "$input" model
first() { "$BIN" convert model -o changed "${flags[@]}" --shard 0/2 "$@"; }
second() { "$BIN" convert model -o changed "${flags[@]}" --shard 1/2 "$@"; }
expect_exit 0 first
touch -d '2001-02-03' model/config.json
expect_exit 5 second
expect_one_error 'mxfp4_repack.shard-000-of-002.json: the input changed since that shard was written'
expect_exit 2 first --resume
expect_one_error 'the input changed since'
expect_exit 0 first --force
expect_exit 0 second
expect_exit 0 "$BIN" finalize changed

# Shards that were mixed afterwards, in another directory.
mkdir mixed
"$BIN" convert "$input" -o mixed "${flags[@]}" --compress none --shard 1/2 >/dev/null
cp out/*.shard-000* out/layer-* mixed/
expect_exit 3 "$BIN" finalize mixed
expect_one_error 'shard 0/2 and shard 1/2: made from different plans'

rm -rf mixed
expect_exit 0 "$BIN" convert "$input" -o mixed "${flags[@]}" --shard 1/2 --include-rest
expect_exit 5 "$BIN" convert "$input" -o mixed "${flags[@]}" --shard 0/2
expect_one_error 'mixed/mxfp4_repack/mxfp4_repack.shard-001-of-002.json: a shard of another plan'
cp out/*.shard-000* out/layer-* mixed/
expect_exit 3 "$BIN" finalize mixed
expect_one_error 'mixed/mxfp4_repack.shard-000-.* and mixed/mxfp4_repack/mxfp4_repack.shard-001-.*: made from different plans'

# Damage after the shard was written.
expect_exit 0 shard --shard 1/2
for file in out/layer-00000.safetensors.zst out/mxfp4_repack.shard-001-of-002.json; do
  cp "$file" saved
  printf X | dd of="$file" bs=1 seek=700 conv=notrunc status=none
  expect_exit 3 "$BIN" finalize out
  expect_one_error "$(basename "$file")"
  cp saved "$file"
done
mv out/layer-00001.safetensors.zst saved
expect_exit 3 "$BIN" finalize out
expect_one_error 'layer-00001'
mv saved out/layer-00001.safetensors.zst
cp out/layer-00001.safetensors.zst out/layer-00007.safetensors.zst
expect_exit 3 "$BIN" finalize out
expect_one_error 'layer-00007.safetensors.zst: not in the manifest'
rm out/layer-00007.safetensors.zst

# Killed between the manifests and the removal of what they replace.
cp -r out before
expect_exit 0 "$BIN" finalize out
cp out/mxfp4_repack.json out/model.safetensors.index.json before/
rm before/mxfp4_repack.shard-001-of-002.json
expect_exit 0 "$BIN" finalize before
diff -r out before
expect_exit 0 shard --shard 1/2 --resume
grep -qx 'out: complete already, the layers of shard 1/2 included, nothing to do' stdout && grep -qx 'next: mxfp4-repack verify out' stdout ||
  { cat stdout >&2; fail 'a shard of a complete result'; }
expect_exit 5 shard --shard 1/2
expect_one_error 'complete already'
# Whatever the flags: no shard knows which of the others have written over a result already.
expect_exit 5 shard --shard 1/2 --force
expect_one_error 'complete already'
grep -q '^hint: .*a shard replaces no result$' stderr || fail 'a wrong hint'
expect_exit 5 shard --shard 1/2 --force --compress none
expect_one_error 'complete result of another conversion'
grep -q '^hint: .*a shard replaces no result$' stderr || fail 'a wrong hint'
diff -r out before

# A killed shard goes on with --resume; without it the remains are named. Layers of zeros compress to
# next to nothing, others do not, and the limit on the size of a file, between the two, stops the run in
# the third layer, the shard's second; what it cleans up, a killed one leaves.
cat >make.py <<'END'
import json, random, struct
random.seed(5)
E, H, I = 2, 256, 128
tensors, blobs, at = {}, [], 0
for layer in range(4):
    for name, shape in {'w13_weight': [E, 2 * I, H // 2], 'w2_weight': [E, H, I // 2],
                        'w13_weight_scale': [E, 2 * I, H // 32], 'w2_weight_scale': [E, H, I // 32]}.items():
        size = shape[0] * shape[1] * shape[2]
        tensors[f'layers.{layer}.experts.{name}'] = {'dtype': 'U8', 'shape': shape, 'data_offsets': [at, at + size]}
        blobs.append(random.randbytes(size) if layer > 1 else bytes(size))
        at += size
head = json.dumps(dict(tensors, __metadata__={'family': 'generic'})).encode()
open('layers.safetensors', 'wb').write(struct.pack('<Q', len(head)) + head + b''.join(blobs))
END
"$python" make.py
layers() { "$BIN" convert layers.safetensors "${flags[@]}" --threads 1 "$@"; }
killed_shard() {
  rm -rf killed
  expect_exit 5 bash -c 'ulimit -f 100; exec "$@"' - \
    "$BIN" convert layers.safetensors "${flags[@]}" --threads 1 -o killed --shard 0/2
  [ -e killed/layer-00000.safetensors.zst ] || fail 'it was killed too early'
  [ ! -e killed/layer-00002.safetensors.zst ] || fail 'it was not stopped in its second layer'
  echo half >killed/.layer-00002.safetensors.zst.tmp-aB3dE6
  [ ! -e killed/mxfp4_repack.shard-000-of-002.json ] || fail 'a killed shard has a manifest'
}
rm -rf want
expect_exit 0 layers -o want
killed_shard
expect_exit 3 "$BIN" finalize killed
expect_one_error 'no shard is complete here'
expect_exit 5 layers -o killed --shard 0/2
expect_one_error 'shard-000-of-002.progress: an earlier run of this shard was here'
grep -q '^hint: .*--resume' stderr || fail 'no word of --resume'
# A whole conversion would make the shard's layers again, and leave its journal.
for extra in '' --include-rest --check --dry-run; do
  cp -r killed copy
  # shellcheck disable=SC2086
  expect_exit 5 layers -o killed --resume $extra
  expect_one_error 'killed: holds shards of a conversion$'
  grep -qx 'hint: finalize puts shards together; with its --shard, --resume goes on with one; --force replaces them' stderr || fail 'no way on'
  diff -r copy killed
  rm -r copy
done
# A shard that was killed before its first word left an empty one.
mkdir early
: >early/.mxfp4_repack.shard-000-of-002.progress
expect_exit 0 layers -o early --resume
diff -r want early
cp -r killed forced
expect_exit 0 layers -o forced --force
diff -r want forced
stat -c '%i %y' killed/layer-00000.safetensors.zst >finished
expect_exit 0 layers -o killed --shard 1/2
expect_exit 3 "$BIN" finalize killed
expect_one_error '1 of 2 shards are complete, missing: 0'
expect_exit 0 layers -o killed --shard 0/2 --resume
stat -c '%i %y' killed/layer-00000.safetensors.zst | cmp - finished || fail 'a finished layer was written again'
expect_exit 0 "$BIN" finalize killed
diff -r want killed
killed_shard
expect_exit 0 layers -o killed --shard 0/2 --force
expect_exit 0 layers -o killed --shard 1/2
expect_exit 0 "$BIN" finalize killed
diff -r want killed

# A result that is there already: what is gone or cut off since then is found, by verify's words.
finds() {
  expect_exit 1 "$BIN" verify "$1"
  sed '/: [0-9]* differences\?$/q' stdout >verified
  expect_exit 1 "$BIN" finalize "$1"
  diff verified stdout
  grep -qE "$2" stdout || { cat stdout >&2; fail "no word of $2"; }
}
rm -rf whole
expect_exit 0 "$BIN" convert "$input" -o whole "${flags[@]}" --include-rest --tp-size 2
expect_exit 0 "$BIN" finalize whole
expect_exit 0 "$BIN" finalize whole/mxfp4_repack
blob=mxfp4_repack/rank-01-of-02
for file in "$blob/layer-00001.safetensors.zst" "$blob/model.safetensors.index.json" config.json; do
  mv "whole/$file" saved
  finds whole "$(basename "$file"): cannot be opened: No such file or directory\$"
  head -c 50 saved >"whole/$file"
  finds whole "$(basename "$file"): "
  mv saved "whole/$file"
done
mv whole/mxfp4_repack/rank-00-of-02 saved
mv whole/$blob whole/mxfp4_repack/rank-00-of-02
mv saved whole/$blob
finds whole 'rank-00-of-02: the manifest is of rank 1 of 2$'
expect_exit 1 "$BIN" finalize whole --json
"$python" -c 'import json; d = json.load(open("stdout")); assert not d["complete"] and d["findings"], d'
# The same after a kill between the manifests and the removal of what they replace.
expect_exit 0 "$BIN" convert "$input" -o again "${flags[@]}" --shard 0/1
cp again/*.shard-* saved-shard
expect_exit 0 "$BIN" finalize again
cp saved-shard again/mxfp4_repack.shard-000-of-001.json
rm again/layer-00001.safetensors.zst
finds again 'layer-00001.safetensors.zst: cannot be opened'
[ -e again/mxfp4_repack.shard-000-of-001.json ] || fail 'the record of a shard whose file is gone was removed'

# What another conversion began is refused by the first shard already, whatever its flags: a whole
# conversion, and layers that no record names.
for extra in '' '--compress none' '--include-rest' '--force' '--resume'; do
  rm -rf killed
  expect_exit 5 bash -c 'ulimit -f 100; exec "$@"' - \
    "$BIN" convert layers.safetensors "${flags[@]}" --threads 1 -o killed
  [ -e killed/layer-00000.safetensors.zst ] || fail 'it was killed too early'
  cp -r killed copy
  # shellcheck disable=SC2086
  expect_exit 5 layers -o killed --shard 0/2 $extra
  expect_one_error 'killed: a conversion into this directory, without --shard, is unfinished$'
  diff -r copy killed
  rm -r copy
done
expect_exit 2 layers -o killed --resume --include-rest
expect_one_error 'killed: the unfinished conversion was begun with other flags: --include-rest: not given, now given$'
expect_exit 0 layers -o killed --resume
diff -r want killed
killed_shard
expect_exit 2 layers -o killed --shard 0/2 --resume --include-rest
expect_one_error 'begun with other flags: --include-rest: not given, now given$'
rm killed/.mxfp4_repack.shard-000-of-002.progress
for extra in '' --dry-run; do
  # shellcheck disable=SC2086
  expect_exit 5 layers -o killed --shard 1/2 --compress none $extra
  expect_one_error 'killed: holds layer-00000.safetensors.zst, and no record of this conversion names it$'
done
[ -z "$(find killed -name '*.progress')" ] || fail 'a refused shard left a journal'

rm -rf out
mkdir out
expect_exit 3 "$BIN" finalize out
expect_one_error 'no shard is complete here'
expect_exit 3 "$BIN" finalize nowhere

# No record says that a shard wrote these layers.
"$BIN" unpack before -o loaded >/dev/null
cp -r loaded copy
expect_exit 5 "$BIN" convert "$input" -o loaded "${flags[@]}" --compress none --shard 0/1
expect_one_error 'loaded: holds layer-0000[01].safetensors, and no record of this conversion names it$'
diff -r copy loaded

for bad in 2/2 1 x/2 -1/2 0/0 1/ /2 auto 0/2x 0/99999999999999999999; do
  expect_exit 2 "$BIN" convert "$input" -o no "${flags[@]}" "--shard=$bad"
  expect_one_error '--shard'
done
[ ! -e no ] || fail 'a directory was left'

# OUT is the same however it is spelled, and each process may spell it in its own way.
spelled=(slash/ slash ./slash/ slash/. "$PWD/slash/" slash//)
for i in 0 1 2 3 4 5; do
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[i]}" "${flags[@]}" --shard "$i/6"
  expect_exit 5 "$BIN" convert "$input" -o "${spelled[5 - i]}" "${flags[@]}" --shard "$i/6"
  expect_one_error "shard-00$i-of-006.json: an earlier run of this shard was here"
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[(i + 1) % 6]}" "${flags[@]}" --shard "$i/6" --resume
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[(i + 2) % 6]}" "${flags[@]}" --shard "$i/6" --force
done
expect_exit 0 "$BIN" finalize slash/
expect_exit 0 "$BIN" convert "$input" -o unslashed "${flags[@]}"
diff -r slash unslashed
for out in "${spelled[@]}"; do
  expect_exit 0 "$BIN" convert "$input" -o "$out" "${flags[@]}" --resume
  expect_exit 0 "$BIN" convert "$input" -o "$out" "${flags[@]}" --force
  expect_exit 0 "$BIN" unpack "$out" -o loaded/ --force
  expect_exit 0 "$BIN" finalize "$out"
  expect_exit 0 "$BIN" verify "$out"
done
diff -r slash unslashed
