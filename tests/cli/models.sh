# Checkpoints as people have them: layers of several kinds, configs and containers as published, and words for what is
# not a checkpoint.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/models_layers.py" "$BIN"
"$python" "$SOURCE_DIR/tests/cli/models_configs.py" "$BIN"
