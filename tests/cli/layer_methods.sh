# Configs that mix quantizations by layer: the layers and the method are those that the release's own config class chose.
expect_exit 0 "$python" "$SOURCE_DIR/tests/cli/layer_methods.py" "$BIN" "$TESTDATA"
