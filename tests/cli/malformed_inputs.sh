# Hundreds of malformed inputs of every container and of blobs: malformed_inputs.py says which.
need_numpy
slow && export UNMEASURED=1
"$python" "$SOURCE_DIR/tests/cli/malformed_inputs.py" "$BIN" "$TESTDATA" "$SEAL"
