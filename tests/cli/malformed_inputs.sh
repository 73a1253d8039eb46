# Hundreds of malformed inputs of every container and of blobs: malformed_inputs.py says which.
need_numpy
grep -q '__[at]san_init' "$BIN" && export SANITIZED=1
"$python" "$SOURCE_DIR/tests/cli/malformed_inputs.py" "$BIN" "$TESTDATA" "$SEAL"
