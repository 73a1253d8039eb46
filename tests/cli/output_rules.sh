# OUT: what may be written where. The table of states is printed by OutputStates, OutputObserved.
model=$TESTDATA/ingest/gptoss_hf
flags='--backend MARLIN --arch sm80'
# shellcheck disable=SC2086
convert_quietly "$model" -o out $flags
cp -r out before

# An input in OUT is not what --force may replace, also through links.
expect_exit 0 "$BIN" unpack before -o loaded
expect_exit 5 "$BIN" convert loaded -o loaded --arch sm90 --force
expect_one_error 'loaded: holds layer-0000[01].safetensors, which this program did not write$'
expect_exit 5 "$BIN" convert before -o before --arch sm90 --force
expect_one_error 'before: holds the input before/'
mkdir blob
cp before/*.json blob/
ln -s "$PWD"/before/layer-* blob/
expect_exit 5 "$BIN" convert blob -o before --arch sm90 --force
expect_one_error 'before: holds the input blob/'
expect_exit 0 "$BIN" verify before --against "$model"

# No output file takes the number of a closed stream.
while read -r want closed; do
  # shellcheck disable=SC2086
  expect_exit $want bash -c "\"\$0\" \"\$@\" $closed" "$BIN" convert "$model" -o closed $flags --progress always
  diff -r before closed || fail "other bytes with $closed"
  expect_exit $want bash -c "\"\$0\" \"\$@\" $closed" "$BIN" unpack closed -o back --progress always
  diff -r loaded back || fail "other bytes unpacked with $closed"
  rm -r closed back
done <<'EOF'
0 <&-
0 2>&-
0 <&- 2>&-
5 >&-
5 >&- 2>&-
5 <&- >&-
5 <&- >&- 2>&-
EOF

# A blob stays what it is: nothing else is written into it.
expect_exit 5 "$BIN" unpack before -o before/loaded
expect_one_error 'before/loaded: lies inside the blob '
expect_exit 5 "$BIN" convert "$model" -o before/again --arch sm90
expect_one_error 'before/again: lies inside the blob '
# Nor into one of several ranks.
"$BIN" convert "$model" -o two-ranks --arch sm90 --tp-size 2 -q
for inside in two-ranks/new two-ranks/rank-00-of-02/new; do
  expect_exit 5 "$BIN" convert "$model" -o $inside --arch sm90
  expect_one_error "$inside: lies inside the blob "
  [ ! -e "$inside" ] || fail "$inside was made"
done
# A blob in its own folder of a model's directory leaves room for others there.
mkdir model-directory && "$BIN" convert "$model" -o model-directory/mxfp4_repack --arch sm90 -q
expect_exit 0 "$BIN" convert "$model" -o model-directory/for-sm100 --arch sm100 -q
expect_exit 3 "$BIN" finalize "$model"
expect_one_error 'no mxfp4_repack.json here, so no complete blob'

# OUT may be a new directory inside the checkpoint's: it is not part of the checkpoint, neither of the
# next conversion nor of what --include-rest copies. The checkpoint's own directory and those above it
# are refused.
mkdir above
cp -r "$model" above/model
echo tokens >above/model/tokenizer.json
# shellcheck disable=SC2086
expect_exit 0 "$BIN" convert above/model -o above/model/packed $flags
diff -r before above/model/packed
expect_exit 0 "$BIN" verify above/model/packed --against above/model
# shellcheck disable=SC2086
expect_exit 0 "$BIN" convert above/model -o above/model/packed $flags --force
expect_exit 0 "$BIN" convert above/model -o above/model/whole --arch sm90 --include-rest
expect_exit 0 "$BIN" convert above/model -o beside --arch sm90 --include-rest
diff -r beside above/model/whole
[ "$(cd beside && find . -maxdepth 1 -type d)" = $'.\n./mxfp4_repack' ] || fail 'the blob was copied as a part of the model'
for out in above/model above above/model/. above/model/packed/..; do
  for flag in '' --force --resume; do
    # shellcheck disable=SC2086
    expect_exit 5 "$BIN" convert above/model -o $out --arch sm90 $flag
    expect_one_error "$out: (exists and is not empty|holds .*, which this program did not write)"
  done
done
# A folder with the name of a blob's makes a blob of the directory: the checkpoint would be lost as one.
for out in above/model/mxfp4_repack above/model/mxfp4_repack/ above/model/./rank-00-of-02 \
  above/model/mxfp4_repack/deep; do
  for flag in '' --force --resume --dry-run --include-rest; do
    # shellcheck disable=SC2086
    expect_exit 2 "$BIN" convert above/model -o $out --arch sm90 $flag
    expect_one_error "$out: .* in the checkpoint's directory would make that directory a blob"
  done
done
(cd above/model && expect_exit 2 "$BIN" convert . -o mxfp4_repack --arch sm90)
expect_exit 0 "$BIN" verify above/model/packed --against above/model
# shellcheck disable=SC2086
expect_exit 0 "$BIN" convert above/model -o above/mxfp4_repack $flags
expect_exit 0 "$BIN" verify above/mxfp4_repack --against above/model
rm -r above/mxfp4_repack
(cd above/model && expect_exit 5 "$BIN" convert . -o . --arch sm90 && expect_one_error '\.: exists and is not empty')

