# Every environment variable that a release of vLLM defines has an answer.
expect_exit 0 "$python" "$SOURCE_DIR/tests/cli/engine_variables.py" "$BIN" "$TESTDATA"
