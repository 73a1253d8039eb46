# Checkpoints as people have them: configs and containers as published, and words for what is not a checkpoint.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/models.py" "$BIN"
