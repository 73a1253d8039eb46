# A blob is a checkpoint: converting a blob gives the blob that converting the checkpoint gives, file by file, for
# every style and many targets; unpack --as-published gives the checkpoint's own experts.
need_numpy
mkdir styles
(cd styles && "$python" "$SOURCE_DIR/tests/cli/blob_input.py" "$BIN" "$TESTDATA/ingest" "$SOURCE_DIR/scripts/make-checkpoint")

# Some ranks, one rank, an older blob, another's rest.
convert_quietly "$TESTDATA/ingest/gptoss_hf" -o two --arch sm90 --tp-size 2
expect_exit 3 "$BIN" convert two/rank-01-of-02 -o out --arch sm90
expect_one_error 'one of 2 ranks'
rm -r two/rank-01-of-02
expect_exit 3 "$BIN" convert two -o out --arch sm90
expect_one_error '1 of 2 ranks is here; rank 1 is not'
[ ! -e out ] || fail 'something was written'
convert_quietly "$TESTDATA/ingest/gptoss_hf" -o one --arch sm90
expect_exit 4 "$BIN" convert one -o out --arch sm90 --include-rest
expect_one_error 'the input is a blob, and only a checkpoint has the rest'
expect_exit 5 "$BIN" convert one -o one/again --arch sm90
[ ! -e out ] || fail 'something was written'
rm -r two

# Unpack replaces nothing.
model=$TESTDATA/ingest/gptoss_hf
expect_exit 0 "$BIN" unpack one -o published --as-published
[ -s published/config.json ] || fail 'no config.json'
expect_exit 5 "$BIN" unpack one -o published --as-published
rm -r published

# A blob's release, machine and ranks are kept; what a flag changes is, and a line says it of ranks.
convert_quietly "$model" -o two --arch sm90 --revision 0.31.0 --tp-size 2 --expert-placement round_robin --enable-expert-parallel
convert_quietly two -o again
diff -r two again || fail 'another blob without a flag'
convert_quietly "$model" -o four --arch sm90 --revision 0.33.0 --tp-size 4 --expert-placement round_robin --enable-expert-parallel
expect_exit 0 "$BIN" convert two -o more --revision 0.33.0 --tp-size 4
grep -q '^mxfp4-repack: two: 4 expert parallel ranks there, this blob is of 2 expert parallel ranks$' stderr || fail 'other ranks without a word'
diff -r four more || fail 'not only the ranks'

# What the layout does not keep is said, and not made up.
expect_exit 0 "$BIN" explain one --arch sm100
grep -q '^FLASHINFER_TRTLLM' stdout || fail 'explain does not answer for a blob'
