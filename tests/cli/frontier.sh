# The newest models, drawn small: convert makes the bytes that the release itself makes.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/frontier.py" "$BIN" "$TESTDATA"
