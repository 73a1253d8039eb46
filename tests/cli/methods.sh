# Checkpoints whose experts the engine serves by a method of another name than their quantization's, and what stops it at start-up.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/methods.py" "$BIN"
