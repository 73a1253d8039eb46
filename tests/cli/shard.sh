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

# A shard that is there: accepted, refused, written again. What shards write lies beside OUT.
rm -rf out
begun=.out.mxfp4_repack-new
expect_exit 0 shard --shard 0/2
[ ! -e out ] || fail 'OUT before finalize'
expect_exit 0 shard --shard 0/2 --resume
grep -qx 'out: shard 0/2 is complete already, nothing to do' stdout && grep -qx 'next: the other shards, then mxfp4-repack finalize out' stdout ||
  { cat stdout >&2; fail 'the shard was not recognised'; }
expect_exit 0 shard --shard 0/2 --resume --json
"$python" -c 'import json; d = json.load(open("stdout")); assert (d["complete"], d["already_complete"]) == (False, True), d'
expect_exit 5 shard --shard 0/2
expect_one_error 'an earlier run of this shard was here'
expect_exit 0 shard --shard 0/2 --force

# A gap; a mixed plan; another count; a whole conversion among shards.
expect_exit 3 "$BIN" finalize out
expect_one_error '1 of 2 shards are complete, missing: 1'
[ ! -e out ] || fail 'a result with a gap'
for command in 'inspect out' 'verify out' 'unpack out -o no'; do
  # shellcheck disable=SC2086
  expect_exit 3 "$BIN" $command
  expect_one_error 'out: unfinished: 1 of 2 shards are complete$'
done
for flag in '' --force; do
  # shellcheck disable=SC2086
  expect_exit 5 shard --shard 1/2 --compress none $flag
  expect_one_error "$begun/shard-000-of-002.progress: begun otherwise: .*--compress: zstd, now none"
done
expect_exit 5 shard --shard 1/3
expect_one_error 'begun as one of 2 shards, now of 3$'
expect_exit 5 shard --shard 1/2 --include-rest
expect_one_error 'begun otherwise: --include-rest: not given, now given$'
expect_exit 2 shard --shard 0/2 --resume --compress none
expect_one_error 'begun otherwise: .*--compress: zstd, now none'
for flag in '' --resume '--resume --include-rest' '--resume --dry-run'; do
  # shellcheck disable=SC2086
  expect_exit 5 shard $flag
  expect_one_error "$begun: holds shards of a conversion\$"
done

# The input changed after a shard was written.
rm -rf model changed
cp -r "$input" model
first() { "$BIN" convert model -o changed "${flags[@]}" --shard 0/2 "$@"; }
second() { "$BIN" convert model -o changed "${flags[@]}" --shard 1/2 "$@"; }
expect_exit 0 first
touch -d '2001-02-03' model/config.json
expect_exit 5 second
expect_one_error 'shard-000-of-002.progress: begun on an input that has changed since$'
expect_exit 2 first --resume
expect_one_error 'begun on an input that has changed since$'
expect_exit 0 first --force
expect_exit 0 second
expect_exit 0 "$BIN" finalize changed

# Shards that were mixed afterwards.
expect_exit 0 "$BIN" convert "$input" -o mixed "${flags[@]}" --compress none --shard 1/2
cp $begun/shard-000* .mixed.mxfp4_repack-new/
cp $begun/result/layer-* .mixed.mxfp4_repack-new/result/
expect_exit 3 "$BIN" finalize mixed
expect_one_error 'shard 0/2 and shard 1/2: made from different plans'

# Damage after the shard was written.
expect_exit 0 shard --shard 1/2
layer=$begun/result/layer-00000.safetensors.zst
for file in $layer $begun/shard-001-of-002.progress; do
  cp "$file" saved
  printf X | dd of="$file" bs=1 seek=700 conv=notrunc status=none
  expect_exit 3 "$BIN" finalize out
  cp saved "$file"
done
mv $layer saved
expect_exit 3 "$BIN" finalize out
expect_one_error 'layer-00000'
grep -q '^hint: run shard [01]/2 again, with --force' stderr || fail 'no way on'
mv saved $layer
cp $layer $begun/result/layer-00007.safetensors.zst
expect_exit 3 "$BIN" finalize out
expect_one_error 'layer-00007.safetensors.zst: not in the manifest'
rm $begun/result/layer-00007.safetensors.zst

# Killed behind the last step.
cp -r $begun saved
expect_exit 0 "$BIN" finalize out
[ ! -e $begun ] || fail 'the records stay'
rm -r saved/result
mv saved $begun
cp -r out before
expect_exit 0 "$BIN" finalize out
diff -r before out
[ ! -e $begun ] || fail 'the records stay'
expect_exit 0 shard --shard 1/2 --resume
grep -qx 'out: complete already, nothing to do' stdout && grep -qx 'next: mxfp4-repack verify out' stdout ||
  { cat stdout >&2; fail 'a shard of a complete result'; }
# Whatever the flags: no shard knows which of the others are at work already.
for flag in '' --force; do
  # shellcheck disable=SC2086
  expect_exit 5 shard --shard 1/2 $flag
  expect_one_error 'complete already'
  grep -q '^hint: .*a shard replaces no result$' stderr || fail 'a wrong hint'
done
expect_exit 5 shard --shard 1/2 --force --compress none
expect_one_error 'complete result of another conversion'
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
begun=.killed.mxfp4_repack-new
killed_shard() {
  rm -rf killed $begun
  expect_exit 5 bash -c 'ulimit -f 100; exec "$@"' - \
    "$BIN" convert layers.safetensors "${flags[@]}" --threads 1 -o killed --shard 0/2
  [ -e $begun/result/layer-00000.safetensors.zst ] || fail 'it was killed too early'
  [ ! -e $begun/result/layer-00002.safetensors.zst ] || fail 'it was not stopped in its second layer'
  echo half >$begun/result/.layer-00002.safetensors.zst.tmp-aB3dE6
}
rm -rf want
expect_exit 0 layers -o want
killed_shard
expect_exit 3 "$BIN" finalize killed
expect_one_error '0 of 2 shards are complete, missing: 0, 1'
expect_exit 5 layers -o killed --shard 0/2
expect_one_error 'shard-000-of-002.progress: an earlier run of this shard was here'
grep -q '^hint: .*--resume' stderr || fail 'no word of --resume'
stat -c '%i %y' $begun/result/layer-00000.safetensors.zst >finished
expect_exit 0 layers -o killed --shard 1/2
expect_exit 3 "$BIN" finalize killed
expect_one_error '1 of 2 shards are complete, missing: 0'
expect_exit 0 layers -o killed --shard 0/2 --resume
stat -c '%i %y' $begun/result/layer-00000.safetensors.zst | cmp - finished || fail 'a finished layer was written again'
expect_exit 0 "$BIN" finalize killed
diff -r want killed
killed_shard
expect_exit 0 layers -o killed --shard 0/2 --force
expect_exit 0 layers -o killed --shard 1/2
expect_exit 0 "$BIN" finalize killed
diff -r want killed
# --force of a whole conversion replaces shards.
killed_shard
expect_exit 0 layers -o killed --force
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

# A whole conversion is none of a shard's.
rm -rf killed $begun
expect_exit 5 bash -c 'ulimit -f 100; exec "$@"' - \
  "$BIN" convert layers.safetensors "${flags[@]}" --threads 1 -o killed
cp -r $begun copy
for extra in '' '--compress none' '--force' '--resume'; do
  # shellcheck disable=SC2086
  expect_exit 5 layers -o killed --shard 0/2 $extra
  expect_one_error 'killed: a conversion into this directory, without --shard, is unfinished$'
  diff -r copy $begun
done
rm -r copy
expect_exit 0 layers -o killed --resume
diff -r want killed

rm -rf out
mkdir out
expect_exit 3 "$BIN" finalize out
expect_one_error 'no shard is complete here'
expect_exit 3 "$BIN" finalize nowhere

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
  expect_one_error "shard-00$i-of-006.progress: an earlier run of this shard was here"
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[(i + 1) % 6]}" "${flags[@]}" --shard "$i/6" --resume
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[(i + 2) % 6]}" "${flags[@]}" --shard "$i/6" --force
done
expect_exit 0 "$BIN" finalize slash/
expect_exit 0 "$BIN" convert "$input" -o unslashed "${flags[@]}"
diff -r slash unslashed
for out in "${spelled[@]}"; do
  expect_exit 0 "$BIN" convert "$input" -o "$out" "${flags[@]}" --resume
  expect_exit 0 "$BIN" convert "$input" -o "$out" "${flags[@]}" --force
  expect_exit 0 "$BIN" finalize "$out"
  expect_exit 0 "$BIN" verify "$out"
done
diff -r slash unslashed
