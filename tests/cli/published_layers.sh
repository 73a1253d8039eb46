# Configs as they were published, as a new user tries them: what the releases' own code makes of each layer's experts.
"$python" "$SOURCE_DIR/tests/cli/published_layers.py" "$BIN" "$TESTDATA"
