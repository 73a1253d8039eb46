# Draft layers (MTP): repacked where the release's own draft class gives their experts an MXFP4 method, else left as they are or warned of.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/draft_layers.py" "$BIN" "$TESTDATA"
