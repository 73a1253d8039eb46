# Model classes that a release lacks, and modules that a quantization leaves out by name: as the releases' own code says.
"$python" "$SOURCE_DIR/tests/cli/module_names.py" "$BIN" "$TESTDATA"
