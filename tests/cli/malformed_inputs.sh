# Hundreds of malformed inputs of every container and of blobs: malformed_inputs.py says which.
need_numpy
sanitized && export SANITIZED=1
"$python" "$SOURCE_DIR/tests/cli/malformed_inputs.py" "$BIN" "$TESTDATA" "$SEAL"
