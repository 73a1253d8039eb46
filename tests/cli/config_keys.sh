# Configs that lack a key or say another value: taken and refused as the release's own config class did.
expect_exit 0 "$python" "$SOURCE_DIR/tests/cli/config_keys.py" "$BIN" "$TESTDATA"
