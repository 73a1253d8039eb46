# --json of every command, whether it succeeds or fails: one document of one convention, and every
# member is in mxfp4-repack-json(7).
model=$TESTDATA/ingest/gptoss_hf
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90
"$python" "$SOURCE_DIR/tests/cli/json_documents.py" "$BIN" "$model" "$SOURCE_DIR/man/mxfp4-repack-json.7"
