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

# What shards write lies beside OUT, until finalize.
rm -rf out
begun=.out.mxfp4_repack-new
expect_exit 0 shard --shard 0/2
[ ! -e out ] || fail 'OUT before finalize'

expect_exit 3 "$BIN" finalize out
expect_one_error '1 of 2 shards are complete, missing: 1'
[ ! -e out ] || fail 'a result with a gap'

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
expect_exit 0 "$BIN" finalize out
[ ! -e $begun ] || fail 'the records stay'

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
blob=mxfp4_repack/rank-01-of-02
for file in "$blob/layer-00001.safetensors.zst" "$blob/model.safetensors.index.json" config.json; do
  mv "whole/$file" saved
  finds whole "$(basename "$file"): cannot be opened: No such file or directory\$"
  head -c 50 saved >"whole/$file"
  finds whole "$(basename "$file"): "
  mv saved "whole/$file"
done
rm -rf out
mkdir out
expect_exit 3 "$BIN" finalize out
expect_one_error 'no shard is complete here'

# OUT is the same however each process spells it.
spelled=(slash/ slash ./slash/ slash/. "$PWD/slash/" slash//)
for i in 0 1 2 3 4 5; do
  expect_exit 0 "$BIN" convert "$input" -o "${spelled[i]}" "${flags[@]}" --shard "$i/6"
done
expect_exit 0 "$BIN" finalize slash/
expect_exit 0 "$BIN" convert "$input" -o unslashed "${flags[@]}"
diff -r slash unslashed
