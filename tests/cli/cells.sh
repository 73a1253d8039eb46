# The table of public recipes in tests/bench/README.md is what the program and the plug-in's tables say.
expect_exit 0 "$python" "$SOURCE_DIR/tests/engines/cells.py" "$BIN" --check
