# --model-card: README.md beside the manifest, known as the program's own until somebody edits it.
model=$TESTDATA/ingest/gptoss_hf
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --model-card
grep -q 'out/README.md: model card; to upload: hf upload OWNER/NAME out$' stdout || { cat stdout; fail 'no word about the upload'; }
head -1 out/README.md | grep -qx -- --- || fail 'no metadata'
for line in '| backend | TRITON |' '| layout | triton/hopper-s4 |' '| machine | cuda sm90 |' '--load-format mxfp4_repack' 'mxfp4-repack verify'; do
  grep -qF -- "$line" out/README.md || { cat out/README.md; fail "no line: $line"; }
done
cp out/README.md first.md
expect_exit 0 "$BIN" verify out
# The same bytes again, by --resume on what is complete and by --force.
rm out/README.md
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --model-card --resume --dry-run
[ ! -e out/README.md ] || fail 'a dry run wrote the card'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --model-card --resume
cmp first.md out/README.md || fail 'another card'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --force
[ ! -e out/README.md ] || fail 'the card of an earlier result is left'

# A file of somebody else stays, and so does a card that was edited.
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --model-card --resume
echo 'My notes.' >>out/README.md
expect_exit 5 "$BIN" convert "$model" -o out --arch sm90 --force
expect_one_error 'out: holds README.md, which this program did not write'
grep -q 'My notes' out/README.md || fail 'notes are gone'

# Ranks: one card around them. Shards: finalize writes it.
expect_exit 0 "$BIN" convert "$model" -o ranks --arch sm90 --tp-size 2 --model-card
[ -s ranks/README.md ] && [ ! -e ranks/rank-00-of-02/README.md ] || fail 'the card of ranks'
expect_exit 2 "$BIN" convert "$model" -o parts --arch sm90 --shard 0/1 --model-card
expect_one_error '--model-card: has no effect with --shard'
expect_exit 0 "$BIN" convert "$model" -o parts --arch sm90 --shard 0/1
expect_exit 0 "$BIN" finalize parts --model-card
cmp first.md parts/README.md || fail 'finalize writes another card'
rm parts/README.md
echo 'Somebody else.' >parts/README.md
expect_exit 5 "$BIN" finalize parts --model-card
expect_one_error 'parts: holds README.md, which this program did not write'
grep -q 'Somebody' parts/README.md || fail 'a README of somebody else is gone'

# A whole model directory has the card beside the manifest; the model's own README.md stays on top.
cp -r "$model" named
printf '# The model\n' >named/README.md
expect_exit 0 "$BIN" convert named -o whole --arch sm90 --include-rest --model-card
cmp named/README.md whole/README.md || fail 'not the README of the model'
grep -q ': model card; to upload: hf upload OWNER/NAME whole$' stdout || { cat stdout >&2; fail 'the README of the model would be lost on the hub'; }
expect_exit 0 "$BIN" convert "$model" -o bare/ --arch sm90 --include-rest --model-card
grep -q ': model card; to upload: hf upload OWNER/NAME bare/ && hf upload OWNER/NAME bare/mxfp4_repack/README.md README.md$' stdout ||
  { cat stdout >&2; fail 'the hub would show no card'; }
grep -q 'vllm serve MODEL_DIRECTORY --load-format mxfp4_repack' whole/mxfp4_repack/README.md || fail 'the card of a model directory'
expect_exit 0 "$BIN" convert named -o whole --arch sm90 --include-rest --force

# Names of files come from strangers: they are not markup.
mkdir odd
for file in "$model"/*; do cp "$file" odd/; done
shard=$(cd odd && ls *.safetensors | head -1)
mv "odd/$shard" 'odd/a|[x](y)<b>.safetensors'
sed -i "s/$shard/a|[x](y)<b>.safetensors/" odd/*.index.json 2>/dev/null || true
expect_exit 0 "$BIN" convert odd -o marked --arch sm90 --model-card
grep -qF '| a&#124;&#91;x&#93;(y)&#60;b&#62;.safetensors |' marked/README.md || { cat marked/README.md; fail 'markup of a file name'; }
