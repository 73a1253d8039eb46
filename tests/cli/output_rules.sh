# OUT: what may be written where, what a failed run leaves, and the exit codes of misuse.
model=$TESTDATA/ingest/gptoss_hf
flags='--backend MARLIN --arch sm80'
# shellcheck disable=SC2086
convert_quietly "$model" -o out $flags
cp -r out before

# OUT exists; --force replaces what this program wrote, nothing else.
expect_exit 5 "$BIN" convert "$model" -o out --arch sm90
expect_one_error 'out: exists and is not empty$'
diff -r before out || fail 'a refused run changed OUT'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --force
expect_exit 0 "$BIN" verify out
cmp -s before/mxfp4_repack.json out/mxfp4_repack.json && fail '--force changed nothing'
echo mine >out/notes.txt
expect_exit 5 "$BIN" convert "$model" -o out --arch sm90 --force
expect_one_error 'out: holds notes.txt, which this program did not write$'
[ "$(cat out/notes.txt)" = mine ] && [ -e out/mxfp4_repack.json ] || fail 'foreign files were touched'
: >file
expect_exit 5 "$BIN" convert "$model" -o file --arch sm90 --force
expect_one_error 'file: exists and is not a directory$'
[ ! -s file ] || fail 'a file was overwritten'
mkdir -p empty
expect_exit 0 "$BIN" convert "$model" -o empty --arch sm90
expect_exit 5 "$BIN" unpack before -o empty
expect_one_error 'empty: exists and is not empty$'

# A layer file of a blob is not a checkpoint (a blob is: tests/cli/blob_input.sh).
expect_exit 3 "$BIN" convert before/layer-00000.safetensors.zst -o twice --arch sm90
expect_one_error 'layer-00000.safetensors.zst: compressed with zstd, expected a checkpoint$'
grep -q '^hint: .* a blob by its directory$' stderr || fail 'no hint'
# shellcheck disable=SC2086
convert_quietly "$model" -o plain $flags --compress none
expect_exit 3 "$BIN" convert plain/layer-00000.safetensors -o twice --family gpt_oss --arch sm90
expect_one_error 'already packed'
[ ! -e twice ] || fail 'a refused run left an output'

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
expect_exit 0 "$BIN" convert loaded -o from-loaded --arch sm90 --family gpt_oss
for flag in --resume --force --shard=0/2; do
  expect_exit 5 "$BIN" convert "$model" -o loaded --arch sm90 $flag
  expect_one_error 'loaded: holds layer-0000[01].safetensors, which this program did not write$'
done
"$BIN" unpack before -o again -q
diff -r again loaded
# Nothing is written by --dry-run, by inspect, or by a deployment that is refused.
expect_exit 0 "$BIN" convert "$model" -o dry --arch sm90 --dry-run
grep -q '^layer files  ' stdout || fail 'no plan shown'
expect_exit 4 "$BIN" convert "$model" -o dry --backend NONE --arch sm90
expect_one_error 'Unsupported mxfp4_backend'
[ ! -e dry ] || fail '--dry-run wrote'

# --json is one document; -q says nothing.
for command in "convert $model -o json1 --arch sm90" "convert $model -o json2 --arch sm90 --dry-run" \
  "inspect $model" "inspect $model --arch sm90" "inspect before" "explain --arch sm90" \
  'verify before' 'unpack before -o json3' 'list backends' 'list layouts' 'list revisions' \
  'list styles'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" $command --json
  "$python" -c 'import json, sys; json.load(sys.stdin)' <stdout || fail "$command --json"
done
for command in "convert $model -o quiet1 --arch sm90" 'verify before' 'unpack before -o quiet2'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" $command -q
  [ ! -s stdout ] && [ ! -s stderr ] || fail "$command -q is not quiet"
done

# Usage errors: 2, one line, no output.
while read -r -a arguments; do
  expect_exit 2 "$BIN" "${arguments[@]}"
  expect_one_error ''
  [ ! -s stdout ] || fail "usage error with a result: ${arguments[*]}"
done <<EOF
convert
frobnicate
convert $model
convert $model -o bad --arch sm90 --no-such-flag
convert $model -o bad --arch sm90 --backend TRYTON
convert $model -o bad --backend TRITON
convert $model -o bad --arch sm90 --compress gzip
convert $model -o bad --arch sm90 --memory lots
convert $model -o bad --arch sm90 --threads 0
convert $model -o bad --arch sm90 --layers 7
convert $model -o bad --arch sm90 --layers 1-
convert $model -o bad --arch sm90 --style loud
convert $model -o bad --arch sm90 --family loud
convert $model -o bad --arch sm90 --pad some
convert $model -o bad --arch sm90 --knob params_dtype
convert $model -o bad --arch sm90 --env PATH
convert $model -o bad --arch sm90 --tp-size 2 --rank 2
convert $model -o bad --arch sm90 --tp-size 0
convert $model -o bad --arch sm90 --expert-placement random
convert $model -o bad --arch sm90 --revision yesterday
explain --arch sm90 --family loud
explain --arch sm90 --selector loud
explain --platform abacus
list everything
verify
unpack before
EOF
[ ! -e bad ] || fail 'a usage error left an output'
expect_exit 3 "$BIN" convert missing -o bad --arch sm90
expect_one_error 'missing: '
expect_exit 3 "$BIN" unpack "$model" -o bad
expect_one_error 'no mxfp4_repack.json here'
expect_exit 0 "$BIN" --help
expect_exit 0 "$BIN" convert --help
expect_exit 0 "$BIN" --version
for arguments in --help --version 'convert --help' 'list backends'; do
  # shellcheck disable=SC2086
  expect_exit 5 bash -c '"$0" "$@" >/dev/full' "$BIN" $arguments
  expect_one_error 'stdout: cannot be written: No space left on device$'
  # shellcheck disable=SC2086
  expect_exit 5 bash -c '"$0" "$@" >&-' "$BIN" $arguments
  expect_one_error 'stdout: cannot be written: Bad file descriptor$'
done

# No output file takes the number of a closed stream.
while read -r want closed; do
  # shellcheck disable=SC2086
  expect_exit $want bash -c "\"\$0\" \"\$@\" $closed" "$BIN" convert "$model" -o closed $flags --progress always
  diff -r before closed || fail "other bytes with $closed"
  expect_exit $want bash -c "\"\$0\" \"\$@\" $closed" "$BIN" unpack closed -o back --progress always
  diff -r again back || fail "other bytes unpacked with $closed"
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

# A limit on the size of files is an output error like any other. TSan's runtime writes a file itself,
# before main.
limited() {
  (ulimit -f "$1" && shift && exec "$@" 2>&1 >/dev/null) | cat >&2
  return "${PIPESTATUS[0]}"
}
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

limits='0 1 20'
grep -q __tsan_init "$BIN" && limits=
for blocks in $limits; do
  expect_exit 5 limited $blocks "$BIN" convert "$model" -o limited --arch sm90
  expect_one_error 'limited.*: cannot write: File too large$'
  [ ! -e limited ] || fail 'convert left something'
  expect_exit 5 limited $blocks "$BIN" unpack before -o limited-too
  expect_one_error 'limited-too.*: cannot write: File too large$'
  [ ! -e limited-too ] || fail 'unpack left something'
done

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

# A link may lead to where nothing is yet.
ln -s nowhere/at/all dangling
expect_exit 0 "$BIN" unpack before -o dangling
[ -L dangling ] && diff -r again nowhere/at/all || fail 'the link was replaced'
